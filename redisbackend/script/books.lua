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
  s_quarantine = s_quarantine, s_idle = s_idle, born = born, notes = notes, quiet = false,
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
  local single = not texts[2] and tonumber(texts[1])
  if single then
    if single == books.mark - 1 then
      books.mark = single
    else
      books.insist('ZADD', S, texts[1], texts[1])
      books.gaps = books.gaps + 1
    end
    return
  end
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
  -- A number as an argument is written as %.17g, which is slow.
  local score = g.score == NEVER and 'inf' or string.format('%d', g.score)
  if g.permits == 1 then
    if not books.fallible('ZADD', Z, score, g.member) then return false end
  else
    local args = {}
    for i, m in ipairs(books.members(g)) do args[2 * i - 1], args[2 * i] = score, m end
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
  if books.write(g) then return end
  call('ZREM', Z, MARK) -- nothing, but a write
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

-- load takes a record apart.
function books.load(first, record)
  local score, token, ends, length, granted, permits, flags, ticket, slots, label = take_apart(RECORD, record)
  return {
    member = first, score = score, token = token, ends = ends, length = length, granted = granted, permits = permits,
    flags = flags, ticket = ticket, slots = slots, label = label,
  }
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

-- ended says that permits are due to fall free. Once none are, none are for the rest of the call.
function books.ended()
  books.quiet = books.quiet or call('ZCOUNT', Z, '-inf', '(' .. now) == 0
  return not books.quiet
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
