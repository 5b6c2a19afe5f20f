-- inspect.lua reads the figures of one semaphore. On the way it ends what has expired, at most a portion;
-- what is left of that counts as over.
--
-- KEYS, ARGV 1 and 2: see open.lua
-- ARGV 3 (unused)
--      4 how to publish: I2c0 each of command, channel, name
-- Reply {1, now, YES, capacity, in use, available, excess, quarantined, missing, surplus, rows, holders,
-- latest token, ms to the next end of a lease or -1, lease, maxlease, maxhold, quarantine, idle,
-- counters…} or {1, now, NOSEM, 0, 0}

if books.lapsed() then books.remove(select(3, take_apart('<I2c0I2c0I2c0', ARGV[4])), '') end
if not books.cap then return {1, now, NOSEM, 0, 0} end

-- rows is one more than the highest slot in use. The free slots below mark that reach up to it are found
-- by halves: there are as many of them as places exactly when all of these are free.
local function rows()
  if books.gaps == 0 then return books.mark end
  local low, high = 0, books.mark
  while low < high do
    local middle = math.floor((low + high) / 2)
    if call('ZCOUNT', S, middle, books.mark - 1) == books.mark - middle then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

-- next_end is when the next lease ends.
local function next_end()
  local first = tonumber(call('ZRANGE', E, 0, 0, 'WITHSCORES')[2] or 'inf')
  local due = call('ZRANGEBYSCORE', Z, now, '+inf', 'WITHSCORES', 'LIMIT', 0, 16)
  for i = 1, #due, 2 do
    local base = string.match(due[i], '^%z%a+:%+%d+:(.*)$') or due[i]
    local kind = string.sub(base, 1, #MARK) == MARK and string.sub(base, #MARK + 1, #MARK + 1)
    if kind ~= '@' and kind ~= 'q' then return math.min(first, tonumber(call('ZSCORE', E, due[i]) or due[i + 1])) end
  end
  return first
end

local in_use, available = books.usage()
books.close()
local next = next_end()
local kept = books.reserved()
return {
  1, now, YES, books.cap, in_use, available, math.max(0, in_use - books.cap), books.paroled,
  books.lost == 0 and math.max(0, books.cap - books.list - books.card) or 0, math.max(0, books.list - math.max(0, books.cap - books.card)),
  math.max(books.cap, rows()), math.max(0, books.card - books.extras - books.paroled - kept), books.last,
  next < NEVER and math.max(0, next - now) or -1,
  books.s_lease, books.s_max, books.s_hold, books.s_quarantine, books.s_idle,
  books.immediate, books.late, books.refused, books.timeouts, books.wait_ms, books.releases, books.renewals, books.expirations, books.reconciled, books.held_ms,
}
