// Package ratelimit shares what is scarce between clients, and refuses nobody for its rate.
//
//   - A Queue shares look-ups: a bounded number of them is under way, and clients that wait take turns. A client that asks for much waits behind
//     itself, never before others.
//   - Turns share the processor between reviews that are costly to decode. A turn is interrupted while its review waits for anything else.
package ratelimit
