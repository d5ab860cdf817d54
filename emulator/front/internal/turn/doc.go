// Package turn lets the transactions of one database write one after the other.
//
// A Line is the line before a database. Its owner, if it has one, holds a Turn; everybody else waits, first come
// first served. A waiter leaves when its context ends. The turn goes to the next in line when its owner says Done,
// and never before: what the owner holds in the emulator must be gone by then.
//
// # Idle owners
//
// The owner says with Enter and Leave when it is at work. One that has been idle for the Line's bound loses its turn as
// soon as somebody waits, however short that one has waited: Enter refuses it from then on, and the function given to Wait
// is called once, in a goroutine of its own. It must tidy up and say Done. Without a waiter an owner may idle for ever.
package turn
