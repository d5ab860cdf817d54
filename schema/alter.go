package schema

import "fmt"

// QueueChange is what an ALTER QUEUE does: SetOptions, SetOnDelete,
// SetInterleave, AddRowDeletion, ReplaceRowDeletion or DropRowDeletion.
type QueueChange interface {
	// change returns q with the change made; q itself stays as it is.
	change(q Queue) (Queue, error)
}

// SetOptions sets the options that are not nil and leaves the others. A NULL
// in the statement sets an option to its zero value.
type SetOptions struct {
	ReceiveMode     *string
	DisableSend     *bool
	DisableDelivery *bool
	LocalityGroup   *string
}

// SetOnDelete changes what the deletion of a parent row does.
type SetOnDelete struct{ OnDelete OnDelete }

// SetInterleave changes between INTERLEAVE IN and INTERLEAVE IN PARENT; the
// parent table itself cannot change.
type SetInterleave struct{ Interleave Interleave }

// AddRowDeletion gives a queue without a row deletion policy one.
type AddRowDeletion struct{ RowDeletion RowDeletion }

// ReplaceRowDeletion replaces the row deletion policy that there is.
type ReplaceRowDeletion struct{ RowDeletion RowDeletion }

// DropRowDeletion removes the row deletion policy that there is.
type DropRowDeletion struct{}

// Alter returns q with the change made. It refuses a change that does not fit
// the queue (a policy added to one that has one, another parent table), and
// one whose outcome Validate refuses.
func (q Queue) Alter(c QueueChange) (Queue, error) {
	altered, err := c.change(q)
	if err != nil {
		return Queue{}, fmt.Errorf("schema: alter queue %s: %w", q.Name, err)
	}
	if err := altered.Validate(); err != nil {
		return Queue{}, fmt.Errorf("schema: alter queue %s: %w", q.Name, err)
	}
	return altered, nil
}

func (s SetOptions) change(q Queue) (Queue, error) {
	q.Options = s.apply(q.Options)
	return q, nil
}

func (s SetOptions) apply(o QueueOptions) QueueOptions {
	if s.ReceiveMode != nil {
		o.ReceiveMode = *s.ReceiveMode
	}
	if s.DisableSend != nil {
		o.DisableSend = *s.DisableSend
	}
	if s.DisableDelivery != nil {
		o.DisableDelivery = *s.DisableDelivery
	}
	if s.LocalityGroup != nil {
		o.LocalityGroup = *s.LocalityGroup
	}
	return o
}

func (s SetOnDelete) change(q Queue) (Queue, error) {
	if q.Interleave.Table == "" {
		return q, fmt.Errorf("SET ON DELETE %s: the queue is not interleaved in a table", s.OnDelete)
	}
	q.Interleave.OnDelete = s.OnDelete
	return q, nil
}

func (s SetInterleave) change(q Queue) (Queue, error) {
	if !sameName(q.Interleave.Table, s.Interleave.Table) {
		return q, fmt.Errorf("SET INTERLEAVE IN %s: the parent cannot change, and it is %q", s.Interleave.Table, q.Interleave.Table)
	}
	q.Interleave.InParent, q.Interleave.OnDelete = s.Interleave.InParent, s.Interleave.OnDelete
	return q, nil
}

func (a AddRowDeletion) change(q Queue) (Queue, error) {
	if q.RowDeletion.Column != "" {
		return q, fmt.Errorf("ADD ROW DELETION POLICY: there is one on %s already; use REPLACE", q.RowDeletion.Column)
	}
	return ReplaceRowDeletion(a).set(q), nil
}

func (r ReplaceRowDeletion) change(q Queue) (Queue, error) {
	if q.RowDeletion.Column == "" {
		return q, fmt.Errorf("REPLACE ROW DELETION POLICY: there is none; use ADD")
	}
	return r.set(q), nil
}

// set gives q the policy, its column spelled as declared.
func (r ReplaceRowDeletion) set(q Queue) Queue {
	q.RowDeletion = r.RowDeletion
	q.RowDeletion.Column = q.spelling(r.RowDeletion.Column)
	return q
}

func (DropRowDeletion) change(q Queue) (Queue, error) {
	if q.RowDeletion.Column == "" {
		return q, fmt.Errorf("DROP ROW DELETION POLICY: there is none")
	}
	q.RowDeletion = RowDeletion{}
	return q, nil
}
