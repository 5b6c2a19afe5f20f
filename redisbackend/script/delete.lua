-- delete.lua removes a semaphore. Its latest token is kept for a week, so that tokens of a semaphore of
-- that name go on growing.
--
-- KEYS, ARGV 1 and 2: see open.lua
-- ARGV 3 <BI2c0  force, ticket
--      4 how to publish: I2c0 each of command, channel, name
-- Reply {1, now, 1 or 0} or {1, now, code, 0, 0}

local force, ticket = take_apart('<BI2c0', ARGV[3])
local name = select(3, take_apart('<I2c0I2c0I2c0', ARGV[4]))
if not books.cap then
  local done = ticket ~= '' and call('HGET', M, 'deleted') == ticket
  return {1, now, done and YES or NO}
end
if books.lapsed() then
  books.remove(name, '')
  return {1, now, NO}
end
if again then return {1, now, NO} end
call('HLEN', G) -- these two may not have been looked at yet, and what is not ours is not removed
call('ZCARD', S)
if books.usage() > 0 and force == 0 then
  books.close()
  return {1, now, IN_USE, 0, 0}
end
books.remove(name, ticket)
books.announce('deleted', '*')
return {1, now, YES}
