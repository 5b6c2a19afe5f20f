-- serve.lua carries out the requests that plain.lua, which has its contract, has left, and hands permits
-- over to the head of the line.

local served, n_served = {}, 0
local joined, joined_want = false, 0
local here = {} -- holders that were granted something by an op of this call
local had_notes = books.notes

local function say(...)
  for i = 1, select('#', ...) do out[n + i] = select(i, ...) end
  n = n + select('#', ...)
end

-- told notes that somebody learns of a grant: it is not given back as undelivered.
local function told(g)
  if g.ticket == '' then return end
  g.ticket = ''
  if g.flags >= RENEWAL then g.flags = g.flags - RENEWAL end
  books.rewrite(g)
end

-- issue makes a grant, or returns nil when Redis has no memory.
local function issue(first, permits, lease, ticket, label, flags)
  -- Then there are slots whose holders were taken out by hand.
  if books.ours + permits > books.cap then books.sweep() end
  if books.gaps > 0 then call('ZCARD', S) end -- an error where it is of another type
  local g = {
    member = first, permits = permits, granted = now, ticket = ticket, label = label, flags = flags, token = books.token(),
    score = 0, ends = 0, length = 0, slots = false,
  }
  books.date(g, books.length(lease, lease0))
  if not books.write(g) then return nil end
  books.draw(permits)
  books.ours, books.extras, books.used = books.ours + permits, books.extras + permits - 1, now
  return g
end

-- refresh puts a new grant in the place of one, with its permits and slots. A raw holder gets a slot.
local function refresh(g, lease, ticket, label)
  books.held_ms = books.held_ms + now - g.granted
  if g.raw then
    g.raw, books.ours = nil, books.ours + 1
  elseif g.score ~= g.ends then
    call('ZREM', E, g.member)
  end
  g.granted, g.token, g.ticket, g.label, g.flags = now, books.token(), ticket, label, RENEWAL
  books.date(g, books.length(lease, lease0))
  books.rewrite(g)
  books.renewals, books.used = books.renewals + 1, now
end

-- held answers an acquire of who holds already: a code, two numbers and a text.
local function held(g, permits, lease, ticket, label, fresh)
  if g.permits ~= permits then return CONFLICT, g.permits, g.token end
  if ticket ~= '' and g.ticket == ticket then return GRANTED, g.token, books.left(g), g.slots end
  if again then return REPLAYED, g.token, books.left(g), g.slots or '' end
  if fresh or g.raw then
    local why, limit = books.admits(lease)
    if why then return why, limit, 0 end
    refresh(g, lease, ticket, label)
    return GRANTED, g.token, books.left(g), g.slots
  end
  told(g)
  return REPLAYED, g.token, books.left(g), g.slots
end

-- hand_over gives what is free to whoever has waited longest: the candidates, and the heads of the lines
-- of other servers. At times it leaves one permit to those who take from the List.
local candidate
local function hand_over()
  while true do
    local other = oldest()
    if not candidate then
      local arg = ARGV[4 + n_ops + n_served + 1]
      if arg and n_served < n_candidates then
        local permits, lease, waited, arrival, holder, ticket, label = take_apart('<ddddI2c0I2c0I2c0', arg)
        candidate = {permits, lease, waited, arrival, holder, ticket, label, first = books.member(holder), looked = false}
      end
    end
    local c = candidate
    if not c and not other then return end
    if c then
      -- Nobody but a candidate is granted anything meanwhile, so one look is enough.
      local g = not c.looked and books.find(c.first)
      c.looked = true
      local a, b, d, e
      if g then
        a, b, d, e = held(g, c[1], c[2], c[6], c[7], false)
      elseif books.cap > 0 and c[1] > books.cap then
        a, b, d = TOOMANY, books.cap, 0
      elseif again or (other and other.arrival < c[4]) then
        a = nil
      else
        if books.free() - gift < c[1] and books.ended() then books.expire() end
        if books.streak >= ROW and books.free() >= c[1] and gift == 0 then gift, books.streak = 1, 0 end
        if books.free() - gift < c[1] then return end
        g = issue(c.first, c[1], c[2], c[6], c[7], WAITED)
        if not g then return end
        books.late, books.wait_ms, books.streak = books.late + 1, books.wait_ms + c[3], books.streak + 1
        a, b, d, e = GRANTED, g.token, books.left(g), g.slots
      end
      if a then
        local k = #served
        served[k + 1], served[k + 2], served[k + 3] = a, b, d
        if e then served[k + 4] = e end
        n_served, candidate, other = n_served + 1, nil, nil
      elseif again then
        return
      end
    end
    if other then
      if books.free() - gift < other.want and books.ended() then books.expire() end
      if books.streak >= ROW and books.free() >= other.want and gift == 0 then
        gift, books.streak = 1, 0
        books.announce('permit', other.server) -- it comes for the gift if nobody takes that
      end
      if again then return end
      if books.free() - gift < other.want or not reserve(other) then return end
    end
  end
end

local function acquire(arg)
  local _, flags, permits, lease, capacity, holder, ticket, label = take_apart('<BBdddI2c0I2c0I2c0', arg)
  local wait, create, fresh = flags % 2 == 1, flags % 4 >= 2, flags % 8 >= 4
  if not books.cap then
    if not create then return say(NOSEM, 0, 0) end
    if capacity > 0 and permits > capacity then return say(TOOMANY, capacity, 0) end
    local name = select(3, take_apart('<I2c0I2c0I2c0', ARGV[4]))
    local why, a, b = books.make(name, capacity, most, idle0 > 0 and '0 0 0 0 ' .. string.format('%.0f', idle0) .. ' 1' or '0 0 0 0 0 1')
    if why then return say(why, a, b or 0) end
    books.s_idle, books.born = idle0, 1
  end
  local first = books.member(holder)
  local g = books.find(first)
  if g then
    local a, b, c, d = held(g, permits, lease, ticket, label, fresh)
    if d then return say(a, b, c, d) end
    return say(a, b, c)
  end
  local why, limit = books.admits(lease)
  if why then return say(why, limit, 0) end
  if books.cap > 0 and permits > books.cap then return say(TOOMANY, books.cap, 0) end
  if permits > MOST_PERMITS then return say(PERMITS, 0, 0) end
  local clear = not again and n_served == n_candidates and behind == 0 and not joined and #others == 0
  if clear and books.free() < permits and books.ended() then
    repeat until books.expire() == 0 or books.free() >= permits
  end
  if clear and books.free() >= permits then
    g = issue(first, permits, lease, ticket, label, 0)
    if not g then return say(NO_MEMORY, 0, 0) end
    books.immediate, here[holder] = books.immediate + 1, true
    return say(GRANTED, g.token, books.left(g), g.slots)
  end
  if wait then
    if not joined then joined, joined_want = true, permits end
    return say(JOINS)
  end
  books.refused = books.refused + 1
  return say(NO)
end

local function release(arg)
  local _, flags, token_given, holder, ticket = take_apart('<BBdI2c0I2c0', arg)
  local done = ticket ~= '' and string.find(had_notes, ticket .. ' ', 1, true)
  if done and not here[holder] then return say(YES) end
  local g = not (again and not here[holder]) and books.cap and books.find(books.member(holder))
  if not g or token_given ~= 0 and token_given ~= g.token then return say(NO) end
  books.drop(g)
  books.releases, books.held_ms, books.used = books.releases + 1, books.held_ms + (g.raw and 0 or now - g.granted), now
  released[#released + 1] = ticket
  say(YES)
  hand_over()
end

local function renew(arg)
  local _, _, token_given, holder, lease = take_apart('<BBdI2c0d', arg)
  if not books.cap then return say(NO) end
  local g = books.find(books.member(holder))
  local why, limit = books.admits(lease)
  if why then return say(why, limit, 0) end
  if not g or token_given ~= 0 and token_given ~= g.token then return say(NO) end
  if again then return say(NUMBER, books.left(g)) end
  if g.raw then
    local long = books.length(lease, lease0)
    g.ends = now + long
    books.insist('ZADD', Z, 'XX', g.ends, g.member)
  else
    books.date(g, books.length(lease == 0 and (g.length == NEVER and -1 or g.length) or lease, lease0))
    if g.ends <= now then
      g.ends = now - 1
      g.score = g.ends + books.s_quarantine
      books.finish(g)
      say(NO)
      return hand_over()
    end
    g.ticket, g.flags = '', g.flags % RENEWAL
    books.rewrite(g)
  end
  books.renewals, books.used = books.renewals + 1, now
  return say(NUMBER, books.left(g))
end

local function check(arg)
  local _, _, token_given, holder = take_apart('<BBdI2c0', arg)
  local g = books.cap and books.find(books.member(holder))
  return say(g and not g.raw and g.token == token_given and YES or NO)
end

local function give_back(arg)
  local _, _, token_given, holder, ticket = take_apart('<BBdI2c0I2c0', arg)
  local g = books.cap and ticket ~= '' and books.find(books.member(holder))
  if not g or g.ticket ~= ticket or token_given ~= 0 and token_given ~= g.token then return say(NO) end
  books.drop(g)
  if g.flags >= RENEWAL then
    books.renewals = books.renewals - 1
  elseif g.flags >= WAITED then
    books.late = books.late - 1
  else
    books.immediate = books.immediate - 1
  end
  say(YES)
  return hand_over()
end

if books.cap and books.lapsed() and head == 0 then
  books.remove(select(3, take_apart('<I2c0I2c0I2c0', ARGV[4])), '')
end
if books.cap then
  books.timeouts, books.wait_ms = books.timeouts + new_timeouts, books.wait_ms + new_waits
  if head > 0 or mine then books.used = now end
  claim()
  if caught > 0 and not again then books.spare = books.spare + math.max(0, math.min(caught, books.cap - books.list - books.card - books.spare)) end
  books.notes = ''
  if had_notes ~= '' then
    for i = at, final do
      local kind, flags = string.byte(ARGV[i], 1, 2)
      if again or kind == 2 and flags >= 8 then books.notes = had_notes end
    end
  end
  if n_candidates > 0 or #others > 0 then hand_over() end
end
local doubtful = false
for i = at, final do
  local arg = ARGV[i]
  local kind, flags = string.byte(arg, 1, 2)
  doubtful = doubtful or flags >= 8 or kind == 5
  if kind == 1 then acquire(arg)
  elseif kind == 2 then release(arg)
  elseif kind == 3 then renew(arg)
  elseif kind == 4 then check(arg)
  else give_back(arg)
  end
end

out[3], out[4], out[5], out[6], out[7], out[8] = books.cap or -1, books.last, -1, 0, 0, n_served
if books.cap then
  local arrival, want = 0, 0
  if candidate then
    arrival, want = candidate[4], candidate[1]
  elseif behind == 1 or head > 0 and n_candidates == 0 then
    arrival, want = math.max(head, 1), 1
  elseif joined then
    arrival, want = now, joined_want
  end
  books.notes = books.notes .. table.concat(released, ' ') .. ' '
  books.close(standing(arrival, want))
  if arrival > 0 then
    local next = call('ZRANGE', Z, 0, 0, 'WITHSCORES')[2]
    next = next and tonumber(next) or NEVER
    if next < NEVER then out[5] = math.max(0, next - now) end
    local other = oldest()
    if not other or other.arrival >= arrival then out[6] = books.free() end
    local kept = 0
    for _, entry in ipairs(others) do kept = kept + entry.reserved end
    out[7] = (books.more and 1 or 0) + ((books.card > books.ours + kept or books.list + books.card < books.cap) and 2 or 0)
  end
elseif doubtful then
  -- An earlier call may still be under way, and must not make what this one did not find.
  call('HSET', M, server, pack('<dd', serial, now))
  call('PEXPIRE', M, math.max(call('PTTL', M), 60000))
end
out[7] = out[7] + 4 * (books.expirations - expirations)
for i = 1, #served do out[n + i] = served[i] end
return out
