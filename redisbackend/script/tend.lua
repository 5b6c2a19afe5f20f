-- tend.lua looks after a semaphore from time to time: it ends what has expired, at most a portion, trims
-- free permits beyond the capacity, clears away what is stale, removes the semaphore when it was idle for
-- too long, and sees that the registry names it. It restores no shortfall.
--
-- KEYS, ARGV 1 and 2: see open.lua
-- ARGV 3 (unused)
--      4 how to publish: I2c0 each of command, channel, name
-- Reply {1, now, gone, raw, freed, missing, more, ms to the next end or -1, leases found ended}

local name = select(3, take_apart('<I2c0I2c0I2c0', ARGV[4]))

-- forget drops what is known of servers that have not called for ten minutes.
local function forget()
  for _, field in ipairs(call('HKEYS', M)) do
    if string.byte(field) == 64 and field ~= server then
      local _, at = take_apart('<dd', call('HGET', M, field))
      if now > at + 600000 then call('HDEL', M, field) end
    end
  end
end

if books.cap then
  books.expire()
  books.parole()
  books.sweep()
end
if books.cap and books.lapsed() then
  books.remove(name, '')
  books.announce('deleted', '*')
  return {1, now, 1, 0, 0, 0, 0, -1, books.expirations - expirations}
end
if not books.cap then
  if call('ZSCORE', R, name) then call('ZREM', R, name) end
  return {1, now, 1, (books.list > 0 or books.card > 0) and 1 or 0, 0, 0, 0, -1, 0}
end
local before = books.list
books.trim()
books.close()
local freed = math.max(0, books.list - before)
forget()
books.enrol(name, 0)
if freed > 0 then books.announce('changed', '*') end
local next = tonumber(call('ZRANGE', Z, 0, 0, 'WITHSCORES')[2] or 'inf')
local missing = books.lost == 0 and math.max(0, books.cap - books.list - books.card) or 0
return {1, now, 0, 0, freed, missing, books.more and 1 or 0, next < NEVER and math.max(0, next - now) or -1,
  books.expirations - expirations}
