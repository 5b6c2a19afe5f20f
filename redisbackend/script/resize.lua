-- resize.lua changes the capacity and the settings that are given. It takes nothing from anybody who
-- holds: live grants keep their leases, and a new QUARANTINE counts for leases that are set from now on.
--
-- KEYS, ARGV 1 and 2: see open.lua
-- ARGV 3 <dddddd  capacity; lease, maxlease, maxhold, quarantine, idle: -1 where one is not given
--      4 how to publish: I2c0 each of command, channel, name
-- Reply {1, now, YES, capacity, in use, available} or {1, now, code, a, b}

local capacity, lease, max_lease, max_hold, quarantine, idle = take_apart('<dddddd', ARGV[3])
if books.lapsed() then books.remove(select(3, take_apart('<I2c0I2c0I2c0', ARGV[4])), '') end
if not books.cap then return {1, now, NOSEM, 0, 0} end
if capacity > MOST or capacity < 0 then return {1, now, CAPACITY, capacity, 0} end
local new_lease, new_max = lease >= 0 and lease or books.s_lease, max_lease >= 0 and max_lease or books.s_max
if new_max > 0 and new_lease > new_max then return {1, now, SETTINGS, new_lease, new_max} end
if again then
  local in_use, available = books.usage()
  books.close()
  return {1, now, YES, books.cap, in_use, available}
end

books.s_lease, books.s_max = new_lease, new_max
if max_hold >= 0 then books.s_hold = max_hold end
if quarantine >= 0 then books.s_quarantine = quarantine end
if idle >= 0 then books.s_idle, books.used = idle, now end

-- What was missing stays missing: somebody may be between taking a permit by hand and saying so.
local missing = math.max(0, books.cap - books.list - books.card)
if not books.fallible('HSET', M, 'capacity', capacity, 'settings',
  string.format('%.0f %.0f %.0f %.0f %.0f %d', books.s_lease, books.s_max, books.s_hold, books.s_quarantine, books.s_idle, books.born)) then
  return {1, now, NO_MEMORY, 0, 0}
end
books.cap = capacity
books.trim()
local short = books.cap - books.card - missing - books.list
if short > 0 then books.put(short) end
local in_use, available = books.usage()
books.close()
books.announce('changed', '*')
return {1, now, YES, books.cap, in_use, available}
