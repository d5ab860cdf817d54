package schema

import (
	"errors"
	"fmt"
	"strings"
)

// plan is the wanted objects, each after those that it needs.
type plan []wanted

// planFor validates the elements and puts their objects in order. An object
// that two elements want in the same shape is wanted once.
func planFor(elements []Element) (plan, error) {
	var all plan
	at := map[string]int{}
	for i, e := range elements {
		if e == nil {
			return nil, fmt.Errorf("schema: element %d is nil", i)
		}
		if err := e.Validate(); err != nil {
			return nil, fmt.Errorf("schema: element %d (%T): %w", i, e, err)
		}
		for _, sql := range e.Statements() {
			w, err := wantedObject(sql)
			if err != nil {
				return nil, fmt.Errorf("schema: element %d (%T): %w", i, e, err)
			}
			earlier, ok := at[w.key()]
			if !ok {
				at[w.key()] = len(all)
				all = append(all, w)
				continue
			}
			if differ := all[earlier].compareWith(w.object); len(differ) > 0 {
				return nil, fmt.Errorf("schema: %s %s is wanted twice, in two shapes: %s", w.kind, w.name, strings.Join(differ, "; "))
			}
		}
	}
	return all.sorted(at)
}

// sorted returns the plan with each object after those that it needs, and
// otherwise in the given order. at finds an object by its key.
func (p plan) sorted(at map[string]int) (plan, error) {
	const (
		unseen = iota
		open   // its needs are being placed
		placed
	)
	state := make([]int, len(p))
	out := make(plan, 0, len(p))
	var place func(i int) error
	place = func(i int) error {
		switch state[i] {
		case placed:
			return nil
		case open:
			return fmt.Errorf("schema: %s %s needs itself, by way of others", p[i].kind, p[i].name)
		}
		state[i] = open
		for _, need := range p[i].needs {
			if j, ok := at[need]; ok {
				if err := place(j); err != nil {
					return err
				}
			}
		}
		state[i] = placed
		out = append(out, p[i])
		return nil
	}
	for i := range p {
		if err := place(i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// compare splits the plan by what the database has: what is missing, and in the
// result what is present. Objects of another shape are the error.
func (p plan) compare(existing []string) (missing plan, res Result, err error) {
	have := make(map[string]object, len(existing))
	for _, sql := range existing {
		if o, ok := createdObject(sql); ok {
			have[o.key()] = o
		}
	}
	var wrong []error
	for _, w := range p {
		o, ok := have[w.key()]
		if !ok {
			missing = append(missing, w)
			continue
		}
		if differ := w.compareWith(o); len(differ) > 0 {
			wrong = append(wrong, &ShapeError{Kind: w.kind, Name: w.name, Want: w.sql, Found: o.sql, Differences: differ})
			continue
		}
		res.Present = append(res.Present, w.name)
	}
	if len(wrong) > 0 {
		return nil, Result{}, errors.Join(wrong...)
	}
	return missing, res, nil
}

// compareWith returns what differs between w and an existing object. What
// cannot be read counts as a difference: it is certainly not what we write.
func (w wanted) compareWith(o object) []string {
	if w.kind != o.kind {
		return []string{fmt.Sprintf("want a %s, found a %s", w.kind, o.kind)}
	}
	found, _, err := o.read()
	if err != nil {
		return []string{err.Error()}
	}
	return w.shape.diff(found)
}

func (p plan) names() []string {
	names := make([]string, len(p))
	for i, w := range p {
		names[i] = w.name
	}
	return names
}

func (p plan) sql() []string {
	statements := make([]string, len(p))
	for i, w := range p {
		statements[i] = w.sql
	}
	return statements
}
