package main

import (
	"io"
	"log/slog"
	"strings"
)

// newLogger makes the logger of the process: one line per event that an operator would act on.
func newLogger(w io.Writer, f logFlags) *slog.Logger {
	options := &slog.HandlerOptions{Level: f.level()}
	if f.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

func (f logFlags) level() slog.Level {
	switch f.Level {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}

// oneLine is an error's text on one line: errors.Join and some libraries use several.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
