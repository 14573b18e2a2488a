// Package ratelimit shares scarce resources between clients, and refuses no client for its rate.
//
//   - A Queue shares look-ups: a bounded number of them is under way, and clients that wait take turns. The many look-ups of one client wait for
//     each other, and do not delay other clients.
//   - Turns share the processor between reviews that are costly to decode. A turn is interrupted while its review waits for anything else.
package ratelimit
