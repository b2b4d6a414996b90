package spill

import (
	"errors"
	"io"
)

// Heap merges sources that are each in order. Sources that compare equal come in any order.
type Heap[S any] struct {
	Less func(a, b S) bool
	Next func(s S) error // moves to the next record; io.EOF at the end

	items []S
}

// Fill moves every source to its first record.
func (h *Heap[S]) Fill(sources []S) error {
	for _, s := range sources {
		err := h.Next(s)
		if errors.Is(err, io.EOF) {
			continue
		}
		if err != nil {
			return err
		}
		h.push(s)
	}
	return nil
}

// Top returns the source with the least record; false = all are at their end.
func (h *Heap[S]) Top() (s S, ok bool) {
	if len(h.items) == 0 {
		return s, false
	}
	return h.items[0], true
}

// Step moves the top to its next record.
func (h *Heap[S]) Step() error {
	err := h.Next(h.items[0])
	switch {
	case errors.Is(err, io.EOF):
		last := len(h.items) - 1
		h.items[0] = h.items[last]
		h.items = h.items[:last]
	case err != nil:
		return err
	}
	h.down()
	return nil
}

// Group takes every source whose record equals the least out and appends it to dst; none = all are at their end. Advance puts them back.
func (h *Heap[S]) Group(dst []S) []S {
	start := len(dst)
	for len(h.items) > 0 && (len(dst) == start || !h.Less(dst[start], h.items[0])) {
		dst = append(dst, h.items[0])
		last := len(h.items) - 1
		h.items[0] = h.items[last]
		h.items = h.items[:last]
		h.down()
	}
	return dst
}

// Advance moves sources that Group took out to their next records and puts them back.
func (h *Heap[S]) Advance(group []S) error {
	for _, s := range group {
		err := h.Next(s)
		if errors.Is(err, io.EOF) {
			continue
		}
		if err != nil {
			return err
		}
		h.push(s)
	}
	return nil
}

func (h *Heap[S]) push(it S) {
	h.items = append(h.items, it)
	for i := len(h.items) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.Less(h.items[i], h.items[up]) {
			return
		}
		h.items[i], h.items[up] = h.items[up], h.items[i]
		i = up
	}
}

func (h *Heap[S]) down() {
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.items); child++ {
			if h.Less(h.items[child], h.items[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.items[i], h.items[least] = h.items[least], h.items[i]
		i = least
	}
}
