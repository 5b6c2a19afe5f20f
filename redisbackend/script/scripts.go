package script

import (
	"crypto/sha1"
	_ "embed" // the scripts
	"encoding/hex"
	"strings"
)

// Script is a Lua script as Redis keeps it.
type Script struct {
	Name   string
	Source string
	SHA    string // by which EVALSHA calls it
}

var (
	//go:embed open.lua
	openLua string
	//go:embed books.lua
	booksLua string
	//go:embed line.lua
	lineLua string
	//go:embed seldom.lua
	seldomLua string
	//go:embed plain.lua
	plainLua string
	//go:embed serve.lua
	serveLua string
	//go:embed create.lua
	createLua string
	//go:embed resize.lua
	resizeLua string
	//go:embed delete.lua
	deleteLua string
	//go:embed usage.lua
	usageLua string
	//go:embed reconcile.lua
	reconcileLua string
	//go:embed inspect.lua
	inspectLua string
	//go:embed holders.lua
	holdersLua string
	//go:embed tend.lua
	tendLua string
	//go:embed scan.lua
	scanLua string
)

// Library builds the calls of the scripts, for one layout. It never changes and may be used by many
// goroutines.
type Library struct {
	layout                         *Layout
	serve, create, resize, remove  *Script
	reconcile, tend, inspect, page *Script
	scan                           *Script
}

// NewLibrary returns the scripts for a layout.
func NewLibrary(layout *Layout) *Library {
	return &Library{
		layout:    layout,
		serve:     newScript("serve", openLua, plainLua, booksLua, seldomLua, lineLua, serveLua),
		create:    newScript("create", openLua, booksLua, seldomLua, createLua),
		resize:    newScript("resize", openLua, booksLua, seldomLua, usageLua, resizeLua),
		remove:    newScript("delete", openLua, booksLua, seldomLua, usageLua, deleteLua),
		reconcile: newScript("reconcile", openLua, booksLua, seldomLua, reconcileLua),
		tend:      newScript("tend", openLua, booksLua, seldomLua, tendLua),
		inspect:   newScript("inspect", openLua, booksLua, seldomLua, usageLua, inspectLua),
		page:      newScript("holders", holdersLua),
		scan:      newScript("scan", scanLua),
	}
}

// Scripts returns every script, to be loaded into each Redis that is to run them.
func (l *Library) Scripts() []*Script {
	return []*Script{l.serve, l.create, l.resize, l.remove, l.reconcile, l.tend, l.inspect, l.page, l.scan}
}

// Layout returns the layout.
func (l *Library) Layout() *Layout { return l.layout }

func newScript(name string, parts ...string) *Script {
	source := strings.Join(parts, "\n")
	sum := sha1.Sum([]byte(source))
	return &Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}
