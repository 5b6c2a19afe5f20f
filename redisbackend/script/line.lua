-- line.lua keeps the line that the servers of one Redis share: in meta, line holds for each server whose
-- clients wait "server arrival want alive reserved until;": when the first of its waiters arrived, how
-- many permits that one wants, until when the entry counts unless refreshed, how many permits are
-- reserved for it, and how long. A reserved permit is a member of the ZSET, MARK@server:i.

local ALIVE, KEPT, ROW = 2000, 500, 16

local function reservation(who, i) return MARK .. '@' .. string.sub(who, 2) .. ':' .. i end

local others, mine, gift = {}, nil, 0
local unclaimed = {} -- reservations that have run out
if books.cap and meta[4] then
  for name, arrival, want, alive, reserved, till in string.gmatch(meta[4], '(@%w+) (%d+) (%d+) (%d+) (%d+) (%d+);') do
    local entry = {
      server = name, arrival = tonumber(arrival), want = tonumber(want), alive = tonumber(alive),
      reserved = tonumber(reserved), till = tonumber(till),
    }
    if entry.reserved > 0 and now > entry.till then
      for i = 1, entry.reserved do unclaimed[#unclaimed + 1] = reservation(name, i) end
      -- A server that did not come has lost its turn until it calls again.
      entry.reserved, entry.alive = 0, 0
    end
    if name == server then
      mine = entry
    elseif now <= entry.alive then
      others[#others + 1] = entry
    end
  end
end

-- claim frees what is reserved for the calling server, and what others have not claimed in time.
local function claim()
  for i = 1, mine and mine.reserved or 0 do unclaimed[#unclaimed + 1] = reservation(server, i) end
  if mine then mine.reserved = 0 end
  local gone = 0
  for i = 1, #unclaimed, 1000 do
    gone = gone + call('ZREM', Z, unpack(unclaimed, i, math.min(i + 999, #unclaimed)))
  end
  books.card, books.spare, unclaimed = books.card - gone, books.spare + gone, {}
end

-- oldest is the entry of the server, other than the calling one, whose head is next.
local function oldest()
  local first
  for _, entry in ipairs(others) do
    if entry.reserved == 0 and entry.want <= books.cap and (not first or entry.arrival < first.arrival
      or entry.arrival == first.arrival and entry.server < first.server) then
      first = entry
    end
  end
  return first
end

-- reserve keeps permits for the head of another server, and tells that server.
local function reserve(entry)
  entry.reserved, entry.till = entry.want, now + KEPT
  local args = {}
  for i = 1, entry.want do args[2 * i - 1], args[2 * i] = entry.till, reservation(entry.server, i) end
  if not books.fallible('ZADD', Z, unpack(args)) then return false end
  books.draw(entry.want)
  books.announce('permit', entry.server)
  return true
end

-- standing is the shared line as it is to be stored, or nil if that is how it is stored. arrival and want
-- are of the first who waits at the calling server, arrival 0 if nobody does.
local function standing(arrival, want)
  if not meta[4] and arrival == 0 then return nil end
  local entries = {}
  for _, e in ipairs(others) do
    entries[#entries + 1] = string.format('%s %.0f %d %.0f %d %.0f;', e.server, e.arrival, e.want, e.alive, e.reserved, e.till)
  end
  if arrival > 0 then
    local alive = now + ALIVE
    if mine and mine.arrival == arrival and mine.want == want and mine.alive > now + ALIVE / 2 then alive = mine.alive end
    entries[#entries + 1] = string.format('%s %.0f %d %.0f 0 0;', server, arrival, want, alive)
  end
  local line = table.concat(entries)
  return line ~= meta[4] and line or nil
end
