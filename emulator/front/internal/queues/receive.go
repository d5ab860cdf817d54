package queues

import (
	"context"
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/ledger"
)

const (
	// beatInterval is how long a stream is silent before it shows that it lives.
	beatInterval = 20 * time.Second
	// maxBatch bounds a batch, and with it the length of a turn, whatever max_batch_size allows.
	maxBatch = 1000
)

// receiving is one call of RECEIVE_<Queue>.
type receiving struct {
	queues *Queues
	reader *reader
	plan   *plan
	stream *stream
	owner  *streamOwner
	batch  int // the most that may be leased ahead of the client
	ask    int // how many candidates to ask for
	send   func(*spannerpb.PartialResultSet) error
}

// receive serves RECEIVE_<Queue> until its time is over, and then returns nil.
func (q *Queues) receive(ctx context.Context, c *call, send func(*spannerpb.PartialResultSet) error) error {
	args, err := c.statement.Receive(c.params())
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	p, err := q.newPlan(ctx, c.database.name, c.queue, c.statement, c.req, c.queue.ReceiveColumns(), len(c.queue.MessageColumns()))
	if err != nil {
		return err
	}
	metadata := q.metadataFor(p.columns, c.read)
	if c.planOnly() {
		return send(&spannerpb.PartialResultSet{Metadata: metadata, Stats: &spannerpb.ResultSetStats{QueryPlan: &spannerpb.QueryPlan{}}, Last: true})
	}
	leave, err := q.limits.enter(receiverKind{c.database.name, strings.ToLower(c.queue.Name()), args})
	if err != nil {
		return err
	}
	defer leave()
	reader, err := q.startReader(c.database, c.queue)
	if err != nil {
		return err
	}

	q.streams.forgetBefore(time.Now().Add(-q.opts.LeaseLength))
	known, seq := q.streams.find(c.req.GetSql(), c.req.GetResumeToken())
	if known == nil {
		known = q.streams.open(c.req.GetSql(), time.Now().Add(args.MaxDuration))
	}
	r := &receiving{
		queues: q, reader: reader, plan: p, stream: known,
		batch: int(min(args.MaxBatchSize, maxBatch)), send: send,
	}
	r.ask = r.batch
	owner, behind := known.take(seq)
	r.owner = owner
	if err := r.send(&spannerpb.PartialResultSet{Metadata: metadata, ResumeToken: known.nextBeat()}); err != nil {
		return err
	}
	if err := r.sendAgain(ctx, behind); err != nil {
		return err
	}
	return r.loop(ctx)
}

// loop sends what the reader gives until the stream's time is over.
func (r *receiving) loop(ctx context.Context) error {
	rec := r.reader.join()
	defer r.reader.leave(rec)
	end := time.NewTimer(time.Until(r.stream.end))
	defer end.Stop()
	beat := time.NewTimer(beatInterval)
	defer beat.Stop()
	r.reader.ask(rec, r.ask)
	for {
		select {
		case <-end.C:
			return nil
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-r.reader.ctx.Done():
			return r.reader.err()
		case <-r.owner.lost:
			return status.Error(codes.Aborted, "the stream was resumed by another call")
		case err := <-rec.failed:
			return err
		case <-beat.C:
			if err := r.send(&spannerpb.PartialResultSet{ResumeToken: r.stream.nextBeat()}); err != nil {
				return err
			}
		case messages := <-rec.batch:
			if err := r.deliver(ctx, rec, messages); err != nil {
				return err
			}
			r.reader.ask(rec, r.ask)
		}
		beat.Reset(beatInterval)
	}
}

// deliver tests a batch, leases what passes, and sends it.
func (r *receiving) deliver(ctx context.Context, rec *receiver, messages []backing.Message) error {
	if !r.reader.mayDeliver() {
		r.reader.putBack(rec, messages)
		return nil
	}
	rows := make([][]*structpb.Value, len(messages))
	for i, m := range messages {
		rows[i] = m.Values
	}
	positions, err := r.plan.pass(ctx, rows)
	if err != nil {
		r.reader.putBack(rec, messages)
		return err
	}
	passed := make(map[int]bool, len(positions))
	for _, position := range positions {
		passed[position] = true
	}
	var leased []leasedRow
	for i, m := range messages {
		switch {
		case !passed[i]:
			rec.taker.Refuse(m.ID)
		case len(leased) == r.batch:
			rec.taker.PutBack(m.ID)
		default:
			if lease, ok := r.reader.ledger.Grant(m.ID); ok {
				leased = append(leased, leasedRow{message: m, lease: lease})
			}
		}
	}
	if len(leased) < len(messages) {
		r.reader.rouse() // other receivers may want what went back
	}
	// A filter that lets little pass is shown more at a time.
	r.ask = r.batch
	if len(positions) == 0 {
		r.ask = min(2*len(messages), maxBatch)
	}
	if len(leased) == 0 {
		return nil
	}
	leased[len(leased)-1].last = true
	r.stream.sweep(r.reader.ledger.Live)
	return r.sendRows(ctx, leased, func(row leasedRow) []byte {
		return r.stream.append(row.message.ID, row.lease, row.last)
	})
}

// leasedRow is a message on its way to the client.
type leasedRow struct {
	message backing.Message
	lease   ledger.Lease
	last    bool // of its batch
	token   []byte
}

// sendRows sends leased messages, each under the token that it gets just before. Those that are not tried are given
// back.
func (r *receiving) sendRows(ctx context.Context, leased []leasedRow, token func(leasedRow) []byte) (err error) {
	tried := 0
	defer func() {
		for _, row := range leased[tried:] {
			r.reader.ledger.Release(row.lease.Token)
		}
		if tried < len(leased) {
			r.reader.rouse()
		}
	}()
	rows := make([][]*structpb.Value, len(leased))
	for i, row := range leased {
		rows[i] = append(row.message.Values[:len(row.message.Values):len(row.message.Values)],
			structpb.NewStringValue(backing.FormatTime(row.lease.Expires.Add(r.queues.opts.ClockOffset))),
			structpb.NewStringValue(row.lease.Token),
			structpb.NewBoolValue(row.last))
	}
	out, err := r.plan.project(ctx, rows)
	if err != nil {
		return err
	}
	for i, row := range leased {
		if r.owner.isLost() || ctx.Err() != nil || !r.reader.mayDeliver() {
			return nil // the loop finds the reason, or asks again for what it has not sent
		}
		tried = i + 1
		if !r.reader.ledger.Live(row.lease.Token) {
			continue // it waited too long behind rows that the client did not take
		}
		for _, piece := range pieces(out[i], token(row)) {
			if err := r.send(piece); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendAgain sends the rows that a resumed stream had sent behind the client's token, if their leases still run and
// their messages are still there.
func (r *receiving) sendAgain(ctx context.Context, behind []sentRow) error {
	var encoded []string
	var live []sentRow
	for _, row := range behind {
		if r.reader.ledger.Live(row.lease.Token) {
			live = append(live, row)
			encoded = append(encoded, row.id.Key)
		}
	}
	if len(live) == 0 {
		return nil
	}
	keys, err := decodeKeys(encoded)
	if err != nil {
		return err
	}
	there := make(map[ledger.ID]backing.Message)
	err = r.queues.store.Outside(ctx, r.reader.db.name, func(ctx context.Context, q Querier) error {
		return readInto(ctx, q, r.reader.queue, keys, there)
	})
	if err != nil {
		return err
	}
	var leased []leasedRow
	for _, row := range live {
		if m, ok := there[row.id]; ok {
			leased = append(leased, leasedRow{message: m, lease: row.lease, last: row.last, token: r.stream.token(row.seq, 0)})
		}
	}
	return r.sendRows(ctx, leased, func(row leasedRow) []byte { return row.token })
}
