// Package cli reads command lines as both programs do, on top of kong: times with their units (300ms, 5s,
// 1h30m), and negative numbers as values. What it cannot read it refuses in words that say how it is
// written.
//
// To add a form of times, edit [Parse] and the line on TIME in the programs' help.
package cli
