-- create.lua makes a semaphore, or confirms one: then nothing that it is asked for differs from what is
-- stored, except that one made by an acquire becomes permanent.
--
-- KEYS, ARGV 1 and 2: see open.lua
-- ARGV 3 <dddBddddd  capacity, least token, most semaphores, if absent; lease, maxlease, maxhold,
--                    quarantine, idle: -1 where one is not given
--      4 how to publish: I2c0 each of command, channel, name
-- Reply {1, now, YES} or {1, now, code, a, b …}

local capacity, least, most, if_absent, lease, max_lease, max_hold, quarantine, idle = take_apart('<dddBddddd', ARGV[3])
local name = select(3, take_apart('<I2c0I2c0I2c0', ARGV[4]))

local function differs(given, stored) return given >= 0 and given ~= stored end

local function stored() return books.s_lease, books.s_max, books.s_hold, books.s_quarantine, books.s_idle end

-- settings is how they are stored: nil where none is in force.
local function settings(...)
  local text = string.format('%.0f %.0f %.0f %.0f %.0f 0', ...)
  return text ~= '0 0 0 0 0 0' and text or nil
end

if books.lapsed() then books.remove(name, '') end
if not books.cap then
  if capacity > MOST or capacity < 0 then return {1, now, CAPACITY, capacity, 0} end
  lease, max_lease, max_hold = math.max(lease, 0), math.max(max_lease, 0), math.max(max_hold, 0)
  quarantine, idle = math.max(quarantine, 0), math.max(idle, 0)
  if max_lease > 0 and lease > max_lease then return {1, now, SETTINGS, lease, max_lease} end
  local why, a, b = books.make(name, capacity, most, settings(lease, max_lease, max_hold, quarantine, idle))
  if why then return {1, now, why, a, b or 0} end
else
  if if_absent == 0 and (capacity ~= books.cap or differs(lease, books.s_lease) or differs(max_lease, books.s_max)
    or differs(max_hold, books.s_hold) or differs(quarantine, books.s_quarantine) or books.born == 0 and differs(idle, books.s_idle)) then
    return {1, now, EXISTS, books.cap, 0, stored()}
  end
  if books.born == 1 then
    books.s_idle, books.used = math.max(idle, 0), now
    local text = settings(stored())
    if text then call('HSET', M, 'settings', text) else call('HDEL', M, 'settings') end
  end
end
books.last = math.max(books.last, least)
books.close()
return {1, now, YES}
