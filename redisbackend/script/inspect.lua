-- inspect.lua reads the figures of one semaphore. On the way it ends what has expired, at most a portion;
-- what is left of that counts as over.
--
-- KEYS, ARGV 1 and 2: see open.lua
-- ARGV 3 (unused)
--      4 how to publish: I2c0 each of command, channel, name
-- Reply {1, now, YES, capacity, in use, available, excess, quarantined, missing, surplus, rows, holders,
-- latest token, ms to the next end of a lease or -1, lease, maxlease, maxhold, quarantine, idle,
-- counters…} or {1, now, NOSEM, 0, 0}

if lapsed() then remove(select(3, take_apart('<I2c0I2c0I2c0', ARGV[4])), '') end
if not cap then return {1, now, NOSEM, 0, 0} end

-- rows is one more than the highest slot in use. The free slots below mark that reach up to it are found
-- by halves: there are as many of them as places exactly when all of these are free.
local function rows()
  if gaps == 0 then return mark end
  local low, high = 0, mark
  while low < high do
    local middle = math.floor((low + high) / 2)
    if call('ZCOUNT', S, middle, mark - 1) == mark - middle then
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

local in_use, available = usage()
close()
local next = next_end()
local kept = reserved()
return {
  1, now, YES, cap, in_use, available, math.max(0, in_use - cap), paroled,
  lost == 0 and math.max(0, cap - list - card) or 0, math.max(0, list - math.max(0, cap - card)),
  math.max(cap, rows()), math.max(0, card - extras - paroled - kept), last,
  next < NEVER and math.max(0, next - now) or -1,
  s_lease, s_max, s_hold, s_quarantine, s_idle,
  immediate, late, refused, timeouts, wait_ms, releases, renewals, expirations, reconciled, held_ms,
}
