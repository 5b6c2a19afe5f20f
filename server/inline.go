package server

// splitWords splits a line into words as Redis does: blanks separate, "double" quotes know escapes
// (\n \r \t \b \a \xHH), 'single' ones only \'. It returns false where quotes are not closed, or not
// followed by a blank. The words are copies where they were quoted.
func splitWords(line []byte) ([][]byte, bool) {
	words := [][]byte{}
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return words, true
		}
		word, end, ok := oneWord(line, i)
		if !ok {
			return nil, false
		}
		words = append(words, word)
		i = end
	}
}

// oneWord reads the word that begins at i and returns it with its end.
func oneWord(line []byte, i int) ([]byte, int, bool) {
	word := []byte{}
	for i < len(line) && !isSpace(line[i]) {
		if q := line[i]; q == '"' || q == '\'' {
			quoted, end, ok := unquote(line, i+1, q)
			if !ok || (end < len(line) && !isSpace(line[end])) {
				return nil, 0, false
			}
			return append(word, quoted...), end, true
		}
		word = append(word, line[i])
		i++
	}
	return word, i, true
}

// unquote reads up to the closing quote and returns what it enclosed and the place behind it.
func unquote(line []byte, i int, quote byte) ([]byte, int, bool) {
	out := []byte{}
	for i < len(line) {
		c := line[i]
		switch {
		case c == quote:
			return out, i + 1, true
		case c != '\\' || i+1 == len(line):
			out = append(out, c)
			i++
		case quote == '\'':
			if line[i+1] == '\'' {
				i++
			}
			out = append(out, line[i])
			i++
		case line[i+1] == 'x' && i+3 < len(line) && isHex(line[i+2]) && isHex(line[i+3]):
			out = append(out, unhex(line[i+2])<<4|unhex(line[i+3]))
			i += 4
		default:
			out = append(out, unescape(line[i+1]))
			i += 2
		}
	}
	return nil, 0, false
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

func isSpace(c byte) bool { return c == ' ' || (c >= '\t' && c <= '\r') }

func isHex(c byte) bool {
	return (c >= '0' && c <= '9') || (c|0x20 >= 'a' && c|0x20 <= 'f')
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
