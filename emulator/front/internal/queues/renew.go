package queues

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/ledger"
)

// renew answers RENEWLEASE_<Queue>. A token that is renewed gives a row with the new one; the token of a message that
// is gone gives a row with NULL; a dead token gives none.
func (q *Queues) renew(ctx context.Context, c *call) (*spannerpb.ResultSet, error) {
	tokens, err := c.statement.LeaseTokens(c.params())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	columns := c.queue.RenewColumns()
	p, err := q.newPlan(ctx, c.database.name, c.queue, c.statement, c.req, columns, len(columns))
	if err != nil {
		return nil, err
	}
	rs := &spannerpb.ResultSet{Metadata: q.metadataFor(p.columns, c.read)}
	if c.planOnly() {
		return rs, nil
	}
	rows, err := q.renewAll(ctx, c, tokens)
	if err != nil {
		return nil, err
	}
	positions, err := p.pass(ctx, rows)
	if err != nil {
		return nil, err
	}
	passed := make([][]*structpb.Value, len(positions))
	for i, position := range positions {
		passed[i] = rows[position]
	}
	out, err := p.project(ctx, passed)
	if err != nil {
		return nil, err
	}
	for _, values := range out {
		rs.Rows = append(rs.Rows, &structpb.ListValue{Values: values})
	}
	return rs, nil
}

// renewAll returns the rows of RENEWLEASE for the tokens, in their order.
func (q *Queues) renewAll(ctx context.Context, c *call, tokens []string) ([][]*structpb.Value, error) {
	r := c.database.existing(c.queue)
	if r == nil { // nothing was ever leased
		return nil, nil
	}
	if err := q.checkHeld(ctx, r, tokens); err != nil {
		return nil, err
	}
	var rows [][]*structpb.Value
	for _, token := range tokens {
		lease, answer := r.ledger.Renew(token)
		switch answer {
		case ledger.Renewed:
			rows = append(rows, []*structpb.Value{
				structpb.NewStringValue(token),
				structpb.NewStringValue(lease.Token),
				structpb.NewStringValue(backing.FormatTime(lease.Expires.Add(q.opts.ClockOffset))),
			})
		case ledger.Gone:
			rows = append(rows, []*structpb.Value{structpb.NewStringValue(token), structpb.NewNullValue(), structpb.NewNullValue()})
		}
	}
	return rows, nil
}

// checkHeld asks the database which of the leased messages are still there, and tells the ledger.
func (q *Queues) checkHeld(ctx context.Context, r *reader, tokens []string) error {
	held := make(map[ledger.ID]bool) // value: the message is there
	var encoded []string
	for _, token := range tokens {
		if id, live := r.ledger.Holder(token); live {
			if _, twice := held[id]; !twice {
				held[id] = false
				encoded = append(encoded, id.Key)
			}
		}
	}
	if len(held) == 0 {
		return nil
	}
	keys, err := decodeKeys(encoded)
	if err != nil {
		return err
	}
	err = q.store.Outside(ctx, r.db.name, func(ctx context.Context, query Querier) error {
		rs, err := query.Read(ctx, r.queue.ReadIdentities(keys))
		if err != nil {
			return err
		}
		messages, err := r.queue.LogMessages(rs)
		for _, m := range messages {
			if _, asked := held[m.ID]; asked {
				held[m.ID] = true
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	for id, there := range held {
		if !there {
			r.ledger.Forget(id)
		}
	}
	return nil
}
