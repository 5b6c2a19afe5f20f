-- holders.lua reads a page of the live grants of one semaphore, and changes nothing.
--
-- KEYS  1 permits  2 holders  3 meta  4 grants
-- ARGV  1 phase: 0 from the beginning, or after a token; 1 after a raw holder; 2 of a large semaphore
--       2 cursor within the phase   3 count
-- Reply {1, now, 1, phase and cursor of the next page, rows…} or {1, now, 6, 0, 0}; a row is holder, token,
-- slots, permits, ms that remain or -1, ms since the grant, label.
--
-- Up to LARGE permits that are held, grants are listed by token, then raw holders by a hash of their names.
-- A listing that begins when there are more goes through the ZSET as ZSCAN does.

local call, take_apart = redis.call, struct.unpack
local Z, M, G = KEYS[2], KEYS[3], KEYS[4]
local MARK, LARGE, NEVER = '\0semserver:', 2000, math.huge
local clock = call('TIME')
local now = math.floor((clock[1] * 1000000 + clock[2]) / 1000)
local phase, cursor, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not call('HGET', M, 'capacity') then return {1, now, 6, 0, 0} end

-- rows are the live grants among members: a list of member and score by turns.
local function rows(all)
  local found, names = {}, {}
  for i = 1, #all, 2 do names[#names + 1] = all[i] end
  for from = 1, #names, 1000 do
    local records = call('HMGET', G, unpack(names, from, math.min(from + 999, #names)))
    for i, record in ipairs(records) do
      local name, score = names[from + i - 1], tonumber(all[2 * (from + i - 1)])
      local marked = string.sub(name, 1, #MARK) == MARK
      local holder = marked and string.sub(name, #MARK + 1, #MARK + 1) == '=' and string.sub(name, #MARK + 2) or name
      local s, token, ends, _, granted, permits, flags, _, slots, label
      if record then
        s, token, ends, _, granted, permits, flags, _, slots, label = take_apart('<ddddddBBc0I2c0I2c0', record)
      end
      if s == score then
        if flags < 4 and now <= ends then
          local left = ends == NEVER and -1 or math.max(1, ends - now)
          found[#found + 1] = {0, token, holder, token, slots, permits, left, math.max(0, now - granted), label}
        end
      elseif not marked and now <= score then
        local key = tonumber(string.sub(redis.sha1hex(name), 1, 12), 16)
        found[#found + 1] = {1, key, name, 0, '', 1, score == NEVER and -1 or math.max(1, score - now), 0, ''}
      end
    end
  end
  return found
end

local function reply(next_phase, next_cursor, found)
  local out, n = {1, now, 1, next_phase, next_cursor}, 5
  for _, row in ipairs(found) do
    for i = 3, 9 do out[n + i - 2] = row[i] end
    n = n + 7
  end
  return out
end

if phase == 2 or phase == 0 and cursor == 0 and call('ZCARD', Z) > LARGE then
  local page = call('ZSCAN', Z, ARGV[2], 'COUNT', count)
  return reply(page[1] == '0' and 0 or 2, page[1], rows(page[2]))
end

local found = rows(call('ZRANGE', Z, 0, -1, 'WITHSCORES'))
table.sort(found, function(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  return a[2] < b[2]
end)
local page = {}
for _, row in ipairs(found) do
  if row[1] > phase or row[1] == phase and row[2] > cursor then
    local before = page[#page]
    if #page >= count and (row[1] ~= before[1] or row[2] ~= before[2]) then
      return reply(before[1], string.format('%.0f', before[2]), page)
    end
    page[#page + 1] = row
  end
end
return reply(0, '0', page)
