-- books.lua moves permits within the books that open.lua has opened. close() stores them, and puts spare
-- permits where they belong.

-- In Redis, functions are made anew in each call, and what they share as locals is dear. So the books, and
-- what is done with them, are one table.
local books = {
  last = last, mark = mark, gaps = gaps, streak = streak, used = used, paroled = paroled, extras = extras,
  ours = ours, swept = swept, lost = lost, immediate = immediate, late = late, refused = refused,
  timeouts = timeouts, wait_ms = wait_ms, releases = releases, renewals = renewals,
  expirations = expirations, reconciled = reconciled, held_ms = held_ms, list = list, card = card,
  spare = spare, more = more, cap = cap, s_lease = s_lease, s_max = s_max, s_hold = s_hold,
  s_quarantine = s_quarantine, s_idle = s_idle, born = born, notes = notes,
}

if books.s_quarantine > 0 then call('ZCARD', E) end -- an error where it is of another type

-- member is the first permit of a holder in the ZSET, and its field in grants.
function books.member(holder)
  if string.byte(holder) == 0 and string.sub(holder, 1, #MARK) == MARK then return MARK .. '=' .. holder end
  return holder
end

-- further is the i-th permit beyond the first.
function books.further(first, i) return MARK .. '+' .. i .. ':' .. first end

-- fallible is for a write that may be the first one, and needs memory. It returns false when Redis has
-- none. Once a script has written, Redis lets it go on.
function books.fallible(...)
  local done = redis.pcall(...)
  if type(done) ~= 'table' or not done.err then return true end
  if string.find(done.err, 'OOM', 1, true) then return false end
  error(done)
end

-- insist is for a write that must be made whether there is memory or not.
function books.insist(...)
  if books.fallible(...) then return end
  call('ZREM', Z, MARK) -- nothing, but a write
  call(...)
end

-- occupy takes the n lowest free places.
function books.occupy(n)
  if n == 1 and books.gaps == 0 then
    books.mark = books.mark + 1
    return tostring(books.mark - 1)
  end
  local places = {}
  if books.gaps > 0 then
    local popped = call('ZPOPMIN', S, math.min(n, books.gaps))
    for i = 1, #popped, 2 do places[#places + 1] = tonumber(popped[i]) end
    books.gaps = #places < math.min(n, books.gaps) and 0 or books.gaps - #places
  end
  while #places < n do
    places[#places + 1] = books.mark
    books.mark = books.mark + 1
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
function books.vacate(texts)
  local free = {}
  for _, text in ipairs(texts) do
    for first, final in string.gmatch(text, '(%d+)-?(%d*)') do
      first = tonumber(first)
      for place = tonumber(final) or first, first, -1 do
        if place == books.mark - 1 then
          books.mark = place
        else
          free[#free + 1], free[#free + 2] = place, place
        end
      end
    end
  end
  if #free == 0 then return end
  local before = call('ZCARD', S)
  books.insist('ZADD', S, unpack(free, 1, math.min(2000, #free)))
  for i = 2001, #free, 2000 do call('ZADD', S, unpack(free, i, math.min(i + 1999, #free))) end
  books.gaps = books.gaps + call('ZCARD', S) - before
end

-- members are those of a grant.
function books.members(g)
  local all = {g.member}
  for i = 1, g.permits - 1 do all[i + 1] = books.further(g.member, i) end
  return all
end

-- write stores a grant: its members, with its score, and its record. False: Redis has no memory.
function books.write(g)
  if g.permits == 1 then
    if not books.fallible('ZADD', Z, g.score, g.member) then return false end
  else
    local args = {}
    for i, m in ipairs(books.members(g)) do args[2 * i - 1], args[2 * i] = g.score, m end
    if not books.fallible('ZADD', Z, unpack(args)) then return false end
  end
  if not g.slots then g.slots = books.occupy(g.permits) end
  call('HSET', G, g.member, pack(RECORD, g.score, g.token, g.ends, g.length, g.granted, g.permits, g.flags,
    #g.ticket, g.ticket, #g.slots, g.slots, #g.label, g.label))
  if g.score ~= g.ends and g.flags < PAROLE then call('ZADD', E, g.ends, g.member) end
  return true
end

-- rewrite stores a grant that is there already, whether there is memory or not.
function books.rewrite(g)
  books.insist('ZADD', Z, 'XX', g.score, g.member)
  books.write(g)
end

-- draw takes n permits that are free, first from what this call has freed.
function books.draw(n)
  books.card = books.card + n
  books.spare = books.spare - n
  if books.spare < 0 then
    call('RPOP', L, -books.spare)
    books.list, books.spare = books.list + books.spare, 0
  end
end

-- drop takes a grant out of the books and frees its permits.
function books.drop(g)
  if not g.raw then books.vacate({g.slots}) end
  local gone = g.permits == 1 and call('ZREM', Z, g.member) or call('ZREM', Z, unpack(books.members(g)))
  books.card, books.spare = books.card - gone, books.spare + gone
  if g.raw then return end
  call('HDEL', G, g.member)
  books.ours = books.ours - g.permits
  if g.flags >= PAROLE then
    books.paroled = books.paroled - g.permits
  else
    books.extras = books.extras - g.permits + 1
    if g.score ~= g.ends then call('ZREM', E, g.member) end
  end
end

-- finish ends the lease of a grant that has run out: its permits fall free, or go into quarantine.
function books.finish(g)
  if g.flags < PAROLE then
    books.expirations = books.expirations + 1
    books.held_ms = books.held_ms + math.max(0, g.ends - g.granted)
    books.used = math.max(books.used, g.ends)
  end
  if now > g.score then return books.drop(g) end
  call('ZREM', Z, unpack(books.members(g)))
  call('HDEL', G, g.member)
  call('ZREM', E, g.member)
  books.extras = books.extras - g.permits + 1
  books.paroled = books.paroled + g.permits
  g.member, g.flags, g.ticket, g.label = MARK .. 'q' .. string.format('%.0f', g.token), PAROLE, '', ''
  books.write(g)
end

-- load takes a record apart.
function books.load(first, record)
  local g = {member = first}
  g.score, g.token, g.ends, g.length, g.granted, g.permits, g.flags, g.ticket, g.slots, g.label = take_apart(RECORD, record)
  return g
end

-- bury clears away a record whose member was taken out, or changed, by hand. If the first member is
-- there, it is a raw holder's now.
function books.bury(g, score)
  local all = books.members(g)
  if score then table.remove(all, 1) end
  local gone = #all > 0 and call('ZREM', Z, unpack(all)) or 0
  books.card, books.spare = books.card - gone, books.spare + gone
  call('HDEL', G, g.member)
  call('ZREM', E, g.member)
  books.vacate({g.slots})
  books.ours = books.ours - g.permits
  if g.flags >= PAROLE then
    books.paroled = books.paroled - g.permits
  else
    books.extras = books.extras - g.permits + 1
  end
end

-- restore puts the members of a grant back that were lost with the ZSET, if it is live and the permits
-- were not given to others.
function books.restore(g)
  if books.lost == 0 or now > g.ends or books.list + books.spare + books.card + g.permits > books.cap then return false end
  books.rewrite(g)
  books.card = books.card + g.permits
  return true
end

-- find returns the live grant of a holder, or nil. A raw holder's has raw, and no token.
function books.find(first)
  local record, score = call('HGET', G, first), call('ZSCORE', Z, first)
  score = score and tonumber(score)
  if record then
    local g = books.load(first, record)
    if score == g.score then
      if now <= g.ends then return g end
      books.finish(g)
      return nil
    end
    if not score and books.restore(g) then return g end
    books.bury(g, score)
  end
  if not score then return nil end
  local raw = {raw = true, member = first, score = score, ends = score, token = 0, permits = 1, granted = now, flags = 0, ticket = '', label = ''}
  if now <= score then return raw end
  books.expirations = books.expirations + 1
  books.drop(raw)
  return nil
end

-- sweep clears away what clients who work by hand leave behind in what is ours: records whose members they
-- took out; and it puts members back that were lost with the ZSET. It looks at a portion of the records,
-- from where the last one ended.
function books.sweep()
  if books.ours == 0 then return end
  local page = call('HSCAN', G, string.format('%.0f', books.swept), 'COUNT', PORTION)
  books.swept = tonumber(page[1])
  for i = 1, #page[2], 2 do
    local g = books.load(page[2][i], page[2][i + 1])
    local score = call('ZSCORE', Z, g.member)
    score = score and tonumber(score)
    if score ~= g.score and (score or not books.restore(g)) then
      if now > g.ends and g.flags < PAROLE then
        books.expirations = books.expirations + 1
        books.held_ms = books.held_ms + math.max(0, g.ends - g.granted)
      end
      books.bury(g, score)
    end
  end
  if books.swept == 0 then books.lost = 0 end
  books.more = books.more or books.lost > 0
end

-- expire takes out members that are due, at most a portion, and says how many permits fell free.
function books.expire()
  local due = call('ZRANGEBYSCORE', Z, '-inf', '(' .. now, 'WITHSCORES', 'LIMIT', 0, PORTION)
  if #due == 0 then
    books.more = false
    return 0
  end
  books.more = #due == 2 * PORTION
  local before, names = books.card, {}
  for i = 1, #due, 2 do names[#names + 1] = due[i] end
  local records = call('HMGET', G, unpack(names))
  local gone, dead, places = {}, {}, {}
  for i, name in ipairs(names) do
    local kind = string.sub(name, 1, #MARK) == MARK and string.sub(name, #MARK + 1, #MARK + 1)
    local g = records[i] and books.load(name, records[i])
    if kind == '+' then
      local first = string.match(name, '^%d+:(.*)$', #MARK + 2)
      local record = first and call('HGET', G, first)
      g = record and books.load(first, record)
      if g and call('ZSCORE', Z, first) and g.score == tonumber(due[2 * i]) and i <= #names then
        books.finish(g)
      else
        gone[#gone + 1] = name
      end
    elseif g and g.permits > 1 and g.score == tonumber(due[2 * i]) then
      if call('ZSCORE', Z, name) then books.finish(g) end
    else
      gone[#gone + 1] = name
      if kind ~= '@' and kind ~= 'q' then books.expirations = books.expirations + 1 end
      if g then
        dead[#dead + 1], places[#places + 1] = name, g.slots
        books.ours = books.ours - g.permits
        if g.flags >= PAROLE then
          books.paroled = books.paroled - g.permits
        else
          books.extras = books.extras - g.permits + 1
          books.held_ms = books.held_ms + math.max(0, g.ends - g.granted)
          books.used = math.max(books.used, g.ends)
          if g.score ~= g.ends then call('ZREM', E, name) end
        end
      end
    end
  end
  if #gone > 0 then
    local n = call('ZREM', Z, unpack(gone))
    books.card, books.spare = books.card - n, books.spare + n
  end
  if #dead > 0 then call('HDEL', G, unpack(dead)) end
  books.vacate(places)
  return before - books.card
end

-- parole sends grants into quarantine whose leases have ended, at most a portion.
function books.parole()
  local due = call('ZRANGEBYSCORE', E, '-inf', '(' .. now, 'LIMIT', 0, PORTION)
  books.more = books.more or #due == PORTION
  for _, first in ipairs(due) do
    books.find(first)
    call('ZREM', E, first)
  end
end

-- trim takes free permits out of the List that exceed the capacity.
function books.trim()
  local surplus = books.list - math.max(0, books.cap - books.card)
  if surplus <= 0 then return end
  call('LTRIM', L, surplus, -1)
  books.list = books.list - surplus
end

-- put adds n placeholders to the List.
function books.put(n)
  books.list = books.list + n
  while n > 0 do
    local part = {}
    for i = 1, math.min(n, 1000) do part[i] = 'p' end
    call('RPUSH', L, unpack(part))
    n = n - #part
  end
end

-- free is how many permits may be granted now.
function books.free() return math.max(0, math.min(books.list + books.spare, books.cap - books.card)) end

-- admits says why a lease that is asked for by name is longer than this semaphore allows: a code and a
-- number. 0 is no lease, -1 one for ever.
function books.admits(lease)
  if lease == -1 and books.s_max > 0 then return MAXLEASE_SET, books.s_max end
  if lease == -1 and books.s_hold > 0 then return MAXHOLD_SET, books.s_hold end
  if books.s_max > 0 and lease > books.s_max then return ABOVE_MAXLEASE, books.s_max end
  return nil
end

-- length is that of a lease: as asked for, else the semaphore's own, else the fallback.
function books.length(lease, fallback)
  if lease == 0 then lease = books.s_lease > 0 and books.s_lease or fallback end
  if lease == -1 then lease = NEVER end
  if books.s_max > 0 and lease > books.s_max then return books.s_max end
  return lease
end

-- date gives a grant a lease from now.
function books.date(g, long)
  g.length, g.ends = long, now + long
  if books.s_hold > 0 and g.ends > g.granted + books.s_hold then g.ends = g.granted + books.s_hold end
  g.score = g.ends + books.s_quarantine
end

-- token is the next one.
function books.token()
  books.last = math.max(books.last + 1, seen + 1, micros)
  return books.last
end

-- left is what is left of a lease: 1 at least while it is live; -1 where it does not end.
function books.left(g)
  if g.ends == NEVER then return -1 end
  return math.max(1, g.ends - now)
end

-- enrol names the semaphore in the registry. False: there are as many as there may be, so many.
function books.enrol(name, most)
  if call('ZSCORE', R, name) then return true end
  local count = call('ZCARD', R)
  if most > 0 and count >= most then return false, count end
  local latest = call('ZREVRANGE', R, 0, 0, 'WITHSCORES')
  return books.fallible('ZADD', R, (tonumber(latest[2]) or 0) + 1, name)
end

-- known raises an error where keys that are ours alone are of another type than they should be.
function books.known()
  call('HLEN', G)
  call('ZCARD', S)
  call('ZCARD', E)
end

-- make makes a semaphore. Keys that are there already are taken over as they are. It returns a code and
-- a number where that is not possible.
function books.make(name, capacity, most, settings)
  if capacity > MOST or capacity < 0 then return CAPACITY, capacity end
  books.known()
  local enrolled, count = books.enrol(name, most)
  if not enrolled then
    if count then return SEMAPHORES, count, most end
    return NO_MEMORY, 0
  end
  books.last = math.max(books.last, tonumber(call('HGET', M, 'last') or 0))
  call('PERSIST', M)
  call('HDEL', M, 'last', 'deleted', 'line', 'state', 'settings', 'reconciled')
  call('HSET', M, 'capacity', capacity)
  call('DEL', G, S, E)
  if settings then call('HSET', M, 'settings', settings) end
  books.cap, books.used = capacity, now
  if books.list == 0 and books.card == 0 then books.put(books.cap) end
end

-- remove forgets the semaphore. Its latest token, which request removed it, and the latest calls of all
-- servers are kept for a week.
function books.remove(name, ticket)
  call('UNLINK', L, Z, G, S, E)
  call('ZREM', R, name)
  for _, field in ipairs(call('HKEYS', M)) do
    if string.byte(field) ~= 64 then call('HDEL', M, field) end
  end
  call('HSET', M, 'last', string.format('%.0f', books.last), 'deleted', ticket, server, pack('<dd', serial, now) .. books.notes)
  call('PEXPIRE', M, 604800000)
  books.cap, books.list, books.card, books.spare = nil, 0, 0, 0
end

-- announce tells a server, or all with '*', of something about the semaphore.
function books.announce(kind, whom)
  local command, channel, name = take_apart('<I2c0I2c0I2c0', ARGV[4])
  call(command, channel, kind .. ' ' .. whom .. ' ' .. server .. ' ' .. string.format('%.0f', books.last) .. ' ' .. name)
end

-- lapsed says that nobody has used the semaphore for as long as IDLE says.
function books.lapsed()
  if not books.cap or books.s_idle == 0 or books.card > 0 or now <= books.used + books.s_idle then return false end
  for alive in string.gmatch(meta[4] or '', '@%w+ %d+ %d+ (%d+)') do
    if now <= tonumber(alive) then return false end
  end
  return true
end

-- close puts spare permits into the List, as far as they are within the capacity, and stores the books.
function books.close(line)
  if books.spare > 0 then
    local n = math.min(books.spare, books.cap - books.list - books.card)
    books.spare = 0
    if n > 0 then books.put(n) end
  end
  if books.list > 0 then books.streak = 0 end
  if books.card == 0 and books.mark > 0 and books.ours == 0 then
    if books.gaps > 0 then call('DEL', S) end
    books.mark, books.gaps = 0, 0
  end
  local state = pack(STATE, books.last, books.mark, books.gaps, books.streak, books.used, books.paroled, books.extras, books.ours, books.swept, books.lost, books.immediate,
    books.late, books.refused, books.timeouts, books.wait_ms, books.releases, books.renewals, books.expirations, books.reconciled, books.held_ms)
  local mine = pack('<dd', serial, now) .. books.notes
  if line then return books.fallible('HSET', M, 'state', state, server, mine, 'line', line) end
  return books.fallible('HSET', M, 'state', state, server, mine)
end
