// Package duration reads times on command lines, in the environment and in files, as both programs do:
// 300ms, 5s, 1h30m. What it cannot read it refuses in words that say how times are written.
//
// To add a form, edit [Parse] and the line on TIME in the programs' help.
package duration
