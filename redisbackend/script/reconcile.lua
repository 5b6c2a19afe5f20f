-- reconcile.lua makes the books balance at once: it ends what has expired, at most a portion, and puts the
-- free permits at what they should be. It never touches a live holder. While members are being put back
-- that were lost with the ZSET, a shortfall is not filled up: it is theirs.
--
-- KEYS, ARGV 1 and 2: see open.lua
-- ARGV 3 <BddI2c0  adopt, capacity, most semaphores, ticket
--      4 how to publish: I2c0 each of command, channel, name
-- Reply {1, now, NUMBER, permits put back, more} or {1, now, code, a, b}. Under the ticket that the last one
-- had which put something back, it is answered as that.

local adopt, capacity, most, ticket = take_apart('<BddI2c0', ARGV[3])
local name = select(3, take_apart('<I2c0I2c0I2c0', ARGV[4]))
if books.lapsed() then books.remove(name, '') end
local before = books.list
if not books.cap then
  if adopt == 0 then return {1, now, NOSEM, 0, 0} end
  local why, a, b = books.make(name, capacity, most)
  if why then return {1, now, why, a, b or 0} end
end
if ticket ~= '' then
  local done, n = string.match(call('HGET', M, 'reconciled') or '', '^(%S+) (%d+)$')
  if done == ticket then return {1, now, NUMBER, tonumber(n), 0} end
end
books.expire()
books.parole()
books.sweep()
if books.lost == 0 then
  books.spare = math.max(books.spare, books.cap - books.list - books.card)
end
books.trim()
if not books.close() then return {1, now, NO_MEMORY, 0, 0} end
local back = math.max(0, books.list - before)
if back > 0 then
  books.reconciled = books.reconciled + back
  books.close()
  call('HSET', M, 'reconciled', ticket .. ' ' .. back)
  books.announce('changed', '*')
end
return {1, now, NUMBER, back, books.more and 1 or 0}
