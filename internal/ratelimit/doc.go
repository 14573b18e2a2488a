// Package ratelimit shares scarce resources between clients, and refuses no client for its rate.
//
//   - A Queue shares lookups: it limits the concurrent ones, and clients that wait take turns. The many lookups of
//     one client wait for each other, and do not delay other clients.
//   - Turns share the processor between reviews that are expensive to decode. A turn is interrupted while its review
//     waits for anything else.
package ratelimit
