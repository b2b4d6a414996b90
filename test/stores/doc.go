// Package stores runs statements over a real S3 server: answers are those of the same lake on disk, from one client and from many; credentials come from the environment and
// from a profile; a server that goes away is an error, and statements work again when it is back. Writers compete over it,
// also where requests and answers get lost (the tag soak has more of both). test/stores/setup builds the server (the tag stores, make stores).
package stores
