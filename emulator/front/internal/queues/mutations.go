package queues

import (
	"context"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
)

// RewriteMutations translates the mutations of one commit: Send and Ack become mutations of the backing tables, and
// what a queue does not allow is refused. The order is kept. touched is for Committed, once the commit has landed. The
// commit must have the database's turn.
func (q *Queues) RewriteMutations(ctx context.Context, database string, ms []*spannerpb.Mutation) (out []*spannerpb.Mutation, touched []string, err error) {
	if len(ms) == 0 {
		return ms, nil, nil
	}
	w, err := q.newRewriter(ctx, database)
	if err != nil {
		return nil, nil, err
	}
	out = make([]*spannerpb.Mutation, 0, len(ms))
	for _, m := range ms {
		rewritten, err := w.rewrite(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, rewritten...)
	}
	return out, w.touched, w.checkWholeKeys(ctx)
}

// RewriteMutationKey translates the mutation that names the transaction's first key in an explicit begin.
func (q *Queues) RewriteMutationKey(ctx context.Context, database string, m *spannerpb.Mutation) (*spannerpb.Mutation, error) {
	if m == nil {
		return nil, nil
	}
	w, err := q.newRewriter(ctx, database)
	if err != nil {
		return nil, err
	}
	out, err := w.rewrite(ctx, m)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func (q *Queues) newRewriter(ctx context.Context, database string) (*rewriter, error) {
	_, c, err := q.catalogue(ctx, database)
	if err != nil {
		return nil, err
	}
	return &rewriter{
		database: database, catalogue: c, queues: q,
		sent: make(map[string]bool), acked: make(map[string]bool), whole: make(map[*backing.Queue][]*structpb.ListValue),
	}, nil
}

type rewriter struct {
	database  string
	catalogue *catalogue
	queues    *Queues
	sent      map[string]bool // queue and key of the sends so far
	acked     map[string]bool // and of the acks
	touched   []string
	// whole are the keys of acks that the mutations alone do not assert: where the database makes a part of the key,
	// they can only assert the other parts.
	whole map[*backing.Queue][]*structpb.ListValue
}

// checkWholeKeys asserts them by a look at the table.
func (w *rewriter) checkWholeKeys(ctx context.Context) error {
	for queue, keys := range w.whole {
		there, found := make(map[string]bool, len(keys)), 0
		err := w.queues.store.Outside(ctx, w.database, func(ctx context.Context, q Querier) error {
			rs, err := q.Read(ctx, queue.ReadIdentities(keys))
			if err != nil {
				return err
			}
			messages, err := queue.LogMessages(rs)
			found = len(messages)
			for _, m := range messages {
				there[m.ID.Key] = true
			}
			return err
		})
		if err != nil {
			return err
		}
		if found == len(keys) { // no key is asked for twice
			continue
		}
		missing := slices.IndexFunc(keys, func(key *structpb.ListValue) bool {
			encoded, err := backing.EncodeKey(key)
			return err == nil && !there[encoded] // or it is there, written in another way
		})
		return status.Errorf(codes.NotFound, "Queue %s: message with key %v not found.", queue.Name(), keys[max(0, missing)].AsSlice())
	}
	return nil
}

func (w *rewriter) rewrite(ctx context.Context, m *spannerpb.Mutation) ([]*spannerpb.Mutation, error) {
	switch op := m.GetOperation().(type) {
	case *spannerpb.Mutation_Send_:
		if queue := w.catalogue.find(op.Send.GetQueue()); queue != nil {
			return w.send(queue, op.Send)
		}
		return w.unknown(ctx, m, op.Send.GetQueue())
	case *spannerpb.Mutation_Ack_:
		if queue := w.catalogue.find(op.Ack.GetQueue()); queue != nil {
			return w.ack(queue, op.Ack)
		}
		return w.unknown(ctx, m, op.Ack.GetQueue())
	case *spannerpb.Mutation_Insert:
		return w.write(m, "An Insert mutation", op.Insert.GetTable())
	case *spannerpb.Mutation_Update:
		return w.write(m, "An Update mutation", op.Update.GetTable())
	case *spannerpb.Mutation_InsertOrUpdate:
		return w.write(m, "An InsertOrUpdate mutation", op.InsertOrUpdate.GetTable())
	case *spannerpb.Mutation_Replace:
		return w.write(m, "A Replace mutation", op.Replace.GetTable())
	}
	return []*spannerpb.Mutation{m}, nil
}

func (w *rewriter) write(m *spannerpb.Mutation, operation, table string) ([]*spannerpb.Mutation, error) {
	if queue := w.catalogue.find(table); queue != nil {
		return nil, queue.RefuseWrite(operation, "messages are sent with Send and acknowledged with Ack")
	}
	return []*spannerpb.Mutation{m}, nil
}

// unknown is for a queue that is not kept here. An emulator that knows queues may know it.
func (w *rewriter) unknown(ctx context.Context, m *spannerpb.Mutation, queue string) ([]*spannerpb.Mutation, error) {
	knows, err := w.queues.store.KnowsQueues(ctx)
	if err == nil && !knows {
		err = errNoQueue(queue)
	}
	return []*spannerpb.Mutation{m}, err
}

func (w *rewriter) send(queue *backing.Queue, m *spannerpb.Mutation_Send) ([]*spannerpb.Mutation, error) {
	// Microseconds, as the database's own clock gives them.
	insert, err := queue.Send(m, w.queues.now().Truncate(time.Microsecond))
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(queue.Name())
	if key, known := queue.SentKey(m); known {
		w.sent[name+byKey+key] = true
		w.touched = append(w.touched, name+byKey+key)
	} else {
		w.touched = append(w.touched, name+anywhere)
	}
	return []*spannerpb.Mutation{insert}, nil
}

func (w *rewriter) ack(queue *backing.Queue, m *spannerpb.Mutation_Ack) ([]*spannerpb.Mutation, error) {
	out, err := queue.Ack(m)
	if err != nil {
		return nil, err
	}
	key, err := backing.EncodeKey(m.GetKey())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	place := strings.ToLower(queue.Name()) + byKey + key
	if w.sent[place] {
		return nil, status.Errorf(codes.InvalidArgument, "Ack of queue %s, key %v, stands after Send of the same key: in one commit Ack must come first.", queue.Name(), m.GetKey().AsSlice())
	}
	if w.acked[place] && !m.GetIgnoreNotFound() { // the emulator would say that a deleted row is updated
		return nil, status.Errorf(codes.NotFound, "Queue %s: message with key %v not found: the same commit acknowledges it before.", queue.Name(), m.GetKey().AsSlice())
	}
	w.acked[place] = true
	if queue.MakesKeys() && !m.GetIgnoreNotFound() {
		w.whole[queue] = append(w.whole[queue], m.GetKey())
	}
	return out, nil
}
