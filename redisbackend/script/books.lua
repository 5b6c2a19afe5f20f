-- books.lua moves permits within the books that open.lua has opened. close() stores them, and puts spare
-- permits where they belong.

if s_quarantine > 0 then call('ZCARD', E) end -- an error where it is of another type

-- member is the first permit of a holder in the ZSET, and its field in grants.
local function member(holder)
  if string.byte(holder) == 0 and string.sub(holder, 1, #MARK) == MARK then return MARK .. '=' .. holder end
  return holder
end

-- further is the i-th permit beyond the first.
local function further(first, i) return MARK .. '+' .. i .. ':' .. first end

-- fallible is for a write that may be the first one, and needs memory. It returns false when Redis has
-- none. Once a script has written, Redis lets it go on.
local function fallible(...)
  local done = redis.pcall(...)
  if type(done) ~= 'table' or not done.err then return true end
  if string.find(done.err, 'OOM', 1, true) then return false end
  error(done)
end

-- insist is for a write that must be made whether there is memory or not.
local function insist(...)
  if fallible(...) then return end
  call('ZREM', Z, MARK) -- nothing, but a write
  call(...)
end

-- occupy takes the n lowest free places.
local function occupy(n)
  if n == 1 and gaps == 0 then
    mark = mark + 1
    return tostring(mark - 1)
  end
  local places = {}
  if gaps > 0 then
    local popped = call('ZPOPMIN', S, math.min(n, gaps))
    for i = 1, #popped, 2 do places[#places + 1] = tonumber(popped[i]) end
    gaps = #places < math.min(n, gaps) and 0 or gaps - #places
  end
  while #places < n do
    places[#places + 1] = mark
    mark = mark + 1
  end
  if n == 1 then return tostring(places[1]) end
  local runs, first = {}, places[1]
  for i = 1, n do
    if places[i + 1] ~= places[i] + 1 then
      runs[#runs + 1] = first == places[i] and tostring(first) or first .. '-' .. places[i]
      first = places[i + 1]
    end
  end
  return table.concat(runs, ',')
end

-- vacate gives places back: a list of texts as occupy returns them.
local function vacate(texts)
  local free = {}
  for _, text in ipairs(texts) do
    for first, final in string.gmatch(text, '(%d+)-?(%d*)') do
      first = tonumber(first)
      for place = tonumber(final) or first, first, -1 do
        if place == mark - 1 then
          mark = place
        else
          free[#free + 1], free[#free + 2] = place, place
        end
      end
    end
  end
  if #free == 0 then return end
  local before = call('ZCARD', S)
  insist('ZADD', S, unpack(free, 1, math.min(2000, #free)))
  for i = 2001, #free, 2000 do call('ZADD', S, unpack(free, i, math.min(i + 1999, #free))) end
  gaps = gaps + call('ZCARD', S) - before
end

-- members are those of a grant.
local function members(g)
  local all = {g.member}
  for i = 1, g.permits - 1 do all[i + 1] = further(g.member, i) end
  return all
end

-- write stores a grant: its members, with its score, and its record. False: Redis has no memory.
local function write(g)
  if g.permits == 1 then
    if not fallible('ZADD', Z, g.score, g.member) then return false end
  else
    local args = {}
    for i, m in ipairs(members(g)) do args[2 * i - 1], args[2 * i] = g.score, m end
    if not fallible('ZADD', Z, unpack(args)) then return false end
  end
  if not g.slots then g.slots = occupy(g.permits) end
  call('HSET', G, g.member, pack(RECORD, g.score, g.token, g.ends, g.length, g.granted, g.permits, g.flags,
    #g.ticket, g.ticket, #g.slots, g.slots, #g.label, g.label))
  if g.score ~= g.ends and g.flags < PAROLE then call('ZADD', E, g.ends, g.member) end
  return true
end

-- rewrite stores a grant that is there already, whether there is memory or not.
local function rewrite(g)
  insist('ZADD', Z, 'XX', g.score, g.member)
  write(g)
end

-- draw takes n permits that are free, first from what this call has freed.
local function draw(n)
  card = card + n
  spare = spare - n
  if spare < 0 then
    call('RPOP', L, -spare)
    list, spare = list + spare, 0
  end
end

-- drop takes a grant out of the books and frees its permits.
local function drop(g)
  if not g.raw then vacate({g.slots}) end
  local gone = g.permits == 1 and call('ZREM', Z, g.member) or call('ZREM', Z, unpack(members(g)))
  card, spare = card - gone, spare + gone
  if g.raw then return end
  call('HDEL', G, g.member)
  ours = ours - g.permits
  if g.flags >= PAROLE then
    paroled = paroled - g.permits
  else
    extras = extras - g.permits + 1
    if g.score ~= g.ends then call('ZREM', E, g.member) end
  end
end

-- finish ends the lease of a grant that has run out: its permits fall free, or go into quarantine.
local function finish(g)
  if g.flags < PAROLE then
    expirations = expirations + 1
    held_ms = held_ms + math.max(0, g.ends - g.granted)
    used = math.max(used, g.ends)
  end
  if now > g.score then return drop(g) end
  call('ZREM', Z, unpack(members(g)))
  call('HDEL', G, g.member)
  call('ZREM', E, g.member)
  extras = extras - g.permits + 1
  paroled = paroled + g.permits
  g.member, g.flags, g.ticket, g.label = MARK .. 'q' .. string.format('%.0f', g.token), PAROLE, '', ''
  write(g)
end

-- load takes a record apart.
local function load(first, record)
  local g = {member = first}
  g.score, g.token, g.ends, g.length, g.granted, g.permits, g.flags, g.ticket, g.slots, g.label = take_apart(RECORD, record)
  return g
end

-- bury clears away a record whose member was taken out, or changed, by hand. If the first member is
-- there, it is a raw holder's now.
local function bury(g, score)
  local all = members(g)
  if score then table.remove(all, 1) end
  local gone = #all > 0 and call('ZREM', Z, unpack(all)) or 0
  card, spare = card - gone, spare + gone
  call('HDEL', G, g.member)
  call('ZREM', E, g.member)
  vacate({g.slots})
  ours = ours - g.permits
  if g.flags >= PAROLE then
    paroled = paroled - g.permits
  else
    extras = extras - g.permits + 1
  end
end

-- restore puts the members of a grant back that were lost with the ZSET, if it is live and the permits
-- were not given to others.
local function restore(g)
  if lost == 0 or now > g.ends or list + spare + card + g.permits > cap then return false end
  rewrite(g)
  card = card + g.permits
  return true
end

-- find returns the live grant of a holder, or nil. A raw holder's has raw, and no token.
local function find(first)
  local record, score = call('HGET', G, first), call('ZSCORE', Z, first)
  score = score and tonumber(score)
  if record then
    local g = load(first, record)
    if score == g.score then
      if now <= g.ends then return g end
      finish(g)
      return nil
    end
    if not score and restore(g) then return g end
    bury(g, score)
  end
  if not score then return nil end
  local raw = {raw = true, member = first, score = score, ends = score, token = 0, permits = 1, granted = now, flags = 0, ticket = '', label = ''}
  if now <= score then return raw end
  expirations = expirations + 1
  drop(raw)
  return nil
end

-- sweep clears away what clients who work by hand leave behind in what is ours: records whose members they
-- took out; and it puts members back that were lost with the ZSET. It looks at a portion of the records,
-- from where the last one ended.
local function sweep()
  if ours == 0 then return end
  local page = call('HSCAN', G, string.format('%.0f', swept), 'COUNT', PORTION)
  swept = tonumber(page[1])
  for i = 1, #page[2], 2 do
    local g = load(page[2][i], page[2][i + 1])
    local score = call('ZSCORE', Z, g.member)
    score = score and tonumber(score)
    if score ~= g.score and (score or not restore(g)) then
      if now > g.ends and g.flags < PAROLE then
        expirations = expirations + 1
        held_ms = held_ms + math.max(0, g.ends - g.granted)
      end
      bury(g, score)
    end
  end
  if swept == 0 then lost = 0 end
  more = more or lost > 0
end

-- expire takes out members that are due, at most a portion, and says how many permits fell free.
local function expire()
  local due = call('ZRANGEBYSCORE', Z, '-inf', '(' .. now, 'WITHSCORES', 'LIMIT', 0, PORTION)
  if #due == 0 then
    more = false
    return 0
  end
  more = #due == 2 * PORTION
  local before, names = card, {}
  for i = 1, #due, 2 do names[#names + 1] = due[i] end
  local records = call('HMGET', G, unpack(names))
  local gone, dead, places = {}, {}, {}
  for i, name in ipairs(names) do
    local kind = string.sub(name, 1, #MARK) == MARK and string.sub(name, #MARK + 1, #MARK + 1)
    local g = records[i] and load(name, records[i])
    if kind == '+' then
      local first = string.match(name, '^%d+:(.*)$', #MARK + 2)
      local record = first and call('HGET', G, first)
      g = record and load(first, record)
      if g and call('ZSCORE', Z, first) and g.score == tonumber(due[2 * i]) and i <= #names then
        finish(g)
      else
        gone[#gone + 1] = name
      end
    elseif g and g.permits > 1 and g.score == tonumber(due[2 * i]) then
      if call('ZSCORE', Z, name) then finish(g) end
    else
      gone[#gone + 1] = name
      if kind ~= '@' and kind ~= 'q' then expirations = expirations + 1 end
      if g then
        dead[#dead + 1], places[#places + 1] = name, g.slots
        ours = ours - g.permits
        if g.flags >= PAROLE then
          paroled = paroled - g.permits
        else
          extras = extras - g.permits + 1
          held_ms = held_ms + math.max(0, g.ends - g.granted)
          used = math.max(used, g.ends)
          if g.score ~= g.ends then call('ZREM', E, name) end
        end
      end
    end
  end
  if #gone > 0 then
    local n = call('ZREM', Z, unpack(gone))
    card, spare = card - n, spare + n
  end
  if #dead > 0 then call('HDEL', G, unpack(dead)) end
  vacate(places)
  return before - card
end

-- parole sends grants into quarantine whose leases have ended, at most a portion.
local function parole()
  local due = call('ZRANGEBYSCORE', E, '-inf', '(' .. now, 'LIMIT', 0, PORTION)
  more = more or #due == PORTION
  for _, first in ipairs(due) do
    find(first)
    call('ZREM', E, first)
  end
end

-- trim takes free permits out of the List that exceed the capacity.
local function trim()
  local surplus = list - math.max(0, cap - card)
  if surplus <= 0 then return end
  call('LTRIM', L, surplus, -1)
  list = list - surplus
end

-- put adds n placeholders to the List.
local function put(n)
  list = list + n
  while n > 0 do
    local part = {}
    for i = 1, math.min(n, 1000) do part[i] = 'p' end
    call('RPUSH', L, unpack(part))
    n = n - #part
  end
end

-- free is how many permits may be granted now.
local function free() return math.max(0, math.min(list + spare, cap - card)) end

-- admits says why a lease that is asked for by name is longer than this semaphore allows: a code and a
-- number. 0 is no lease, -1 one for ever.
local function admits(lease)
  if lease == -1 and s_max > 0 then return MAXLEASE_SET, s_max end
  if lease == -1 and s_hold > 0 then return MAXHOLD_SET, s_hold end
  if s_max > 0 and lease > s_max then return ABOVE_MAXLEASE, s_max end
  return nil
end

-- length is that of a lease: as asked for, else the semaphore's own, else the fallback.
local function length(lease, fallback)
  if lease == 0 then lease = s_lease > 0 and s_lease or fallback end
  if lease == -1 then lease = NEVER end
  if s_max > 0 and lease > s_max then return s_max end
  return lease
end

-- date gives a grant a lease from now.
local function date(g, long)
  g.length, g.ends = long, now + long
  if s_hold > 0 and g.ends > g.granted + s_hold then g.ends = g.granted + s_hold end
  g.score = g.ends + s_quarantine
end

-- token is the next one.
local function token()
  last = math.max(last + 1, seen + 1, micros)
  return last
end

-- left is what is left of a lease: 1 at least while it is live; -1 where it does not end.
local function left(g)
  if g.ends == NEVER then return -1 end
  return math.max(1, g.ends - now)
end

-- enrol names the semaphore in the registry. False: there are as many as there may be, so many.
local function enrol(name, most)
  if call('ZSCORE', R, name) then return true end
  local count = call('ZCARD', R)
  if most > 0 and count >= most then return false, count end
  local latest = call('ZREVRANGE', R, 0, 0, 'WITHSCORES')
  return fallible('ZADD', R, (tonumber(latest[2]) or 0) + 1, name)
end

-- known raises an error where keys that are ours alone are of another type than they should be.
local function known()
  call('HLEN', G)
  call('ZCARD', S)
  call('ZCARD', E)
end

-- make makes a semaphore. Keys that are there already are taken over as they are. It returns a code and
-- a number where that is not possible.
local function make(name, capacity, most, settings)
  if capacity > MOST or capacity < 0 then return CAPACITY, capacity end
  known()
  local enrolled, count = enrol(name, most)
  if not enrolled then
    if count then return SEMAPHORES, count, most end
    return NO_MEMORY, 0
  end
  last = math.max(last, tonumber(call('HGET', M, 'last') or 0))
  call('PERSIST', M)
  call('HDEL', M, 'last', 'deleted', 'line', 'state', 'settings', 'reconciled')
  call('HSET', M, 'capacity', capacity)
  call('DEL', G, S, E)
  if settings then call('HSET', M, 'settings', settings) end
  cap, used = capacity, now
  if list == 0 and card == 0 then put(cap) end
end

-- remove forgets the semaphore. Its latest token, which request removed it, and the latest calls of all
-- servers are kept for a week.
local function remove(name, ticket)
  call('UNLINK', L, Z, G, S, E)
  call('ZREM', R, name)
  for _, field in ipairs(call('HKEYS', M)) do
    if string.byte(field) ~= 64 then call('HDEL', M, field) end
  end
  call('HSET', M, 'last', string.format('%.0f', last), 'deleted', ticket, server, pack('<dd', serial, now) .. notes)
  call('PEXPIRE', M, 604800000)
  cap, list, card, spare = nil, 0, 0, 0
end

-- announce tells a server, or all with '*', of something about the semaphore.
local function announce(kind, whom)
  local command, channel, name = take_apart('<I2c0I2c0I2c0', ARGV[4])
  call(command, channel, kind .. ' ' .. whom .. ' ' .. server .. ' ' .. string.format('%.0f', last) .. ' ' .. name)
end

-- lapsed says that nobody has used the semaphore for as long as IDLE says.
local function lapsed()
  return cap and s_idle > 0 and card == 0 and now > used + s_idle and not (meta[4] and string.find(meta[4], '@', 1, true))
end

-- close puts spare permits into the List, as far as they are within the capacity, and stores the books.
local function close(line)
  if spare > 0 then
    local n = math.min(spare, cap - list - card)
    spare = 0
    if n > 0 then put(n) end
  end
  if list > 0 then streak = 0 end
  if card == 0 and mark > 0 and ours == 0 then
    if gaps > 0 then call('DEL', S) end
    mark, gaps = 0, 0
  end
  local state = pack(STATE, last, mark, gaps, streak, used, paroled, extras, ours, swept, lost, immediate,
    late, refused, timeouts, wait_ms, releases, renewals, expirations, reconciled, held_ms)
  local mine = pack('<dd', serial, now) .. notes
  if line then return fallible('HSET', M, 'state', state, server, mine, 'line', line) end
  return fallible('HSET', M, 'state', state, server, mine)
end
