-- usage.lua reads how many permits are in use, for the scripts that say so.

-- reserved is how many permits are kept for waiters of some server.
function books.reserved()
  local n = 0
  for held, till in string.gmatch(meta[4] or '', '(%d+) (%d+);') do
    if now <= tonumber(till) then n = n + tonumber(held) end
  end
  return n
end

-- usage processes what is due, a portion of it, and returns the permits in use and those that may be
-- granted. What is due and left counts as over.
function books.usage()
  books.expire()
  books.parole()
  local over = books.more and call('ZCOUNT', Z, '-inf', '(' .. now) + call('ZCOUNT', E, '-inf', '(' .. now) or 0
  local in_use = math.max(0, books.card - books.paroled - books.reserved() - over)
  return in_use, math.max(0, books.cap - in_use - books.paroled)
end
