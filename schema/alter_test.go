package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAlter(t *testing.T) {
	t.Parallel()
	base := tasks()
	base.Interleave = Interleave{Table: "Users", InParent: true}
	withPolicy := base
	withPolicy.RowDeletion = RowDeletion{Column: DeliverTimeColumn, Days: 7}

	for _, c := range []struct {
		name  string
		queue Queue
		sql   string
		want  func(q *Queue)
	}{
		{"options", base, "SET OPTIONS (disable_delivery = true, locality_group = 'cold')", func(q *Queue) {
			q.Options.DisableDelivery, q.Options.LocalityGroup = true, "cold"
		}},
		{"options back", base, "SET OPTIONS (receive_mode = null)", func(q *Queue) { q.Options.ReceiveMode = "" }},
		{"on delete", base, "SET ON DELETE CASCADE", func(q *Queue) { q.Interleave.OnDelete = Cascade }},
		{"interleave", base, "SET INTERLEAVE IN users ON DELETE CASCADE", func(q *Queue) {
			q.Interleave = Interleave{Table: "Users", OnDelete: Cascade}
		}},
		{"add", base, "ADD ROW DELETION POLICY (OLDER_THAN(delivertime, INTERVAL 3 DAY))", func(q *Queue) {
			q.RowDeletion = RowDeletion{Column: DeliverTimeColumn, Days: 3}
		}},
		{"replace", withPolicy, "REPLACE ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 3 DAY))", func(q *Queue) {
			q.RowDeletion.Days = 3
		}},
		{"drop", withPolicy, "DROP ROW DELETION POLICY", func(q *Queue) { q.RowDeletion = RowDeletion{} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			st, err := ParseStatement("ALTER QUEUE UserTasks " + c.sql)
			require.NoError(t, err)
			got, err := c.queue.Alter(st.(*AlterQueue).Change)
			require.NoError(t, err)
			want := c.queue
			c.want(&want)
			require.Equal(t, want, got)
		})
	}
}

func TestAlterRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	alone := tasks()
	withPolicy := tasks()
	withPolicy.RowDeletion = RowDeletion{Column: DeliverTimeColumn, Days: 7}
	policy := RowDeletion{Column: DeliverTimeColumn, Days: 1}
	for _, c := range []struct {
		queue  Queue
		change QueueChange
		says   string
	}{
		{alone, SetOnDelete{Cascade}, "not interleaved"},
		{alone, SetInterleave{Interleave{Table: "Users"}}, "parent cannot change"},
		{withPolicy, AddRowDeletion{policy}, "use REPLACE"},
		{alone, ReplaceRowDeletion{policy}, "use ADD"},
		{alone, DropRowDeletion{}, "there is none"},
		{alone, AddRowDeletion{RowDeletion{Column: "MessageId", Days: 1}}, "TIMESTAMP"},
	} {
		before := c.queue.DDL()
		_, err := c.queue.Alter(c.change)
		require.ErrorContains(t, err, c.says)
		require.ErrorContains(t, err, "alter queue UserTasks")
		require.Equal(t, before, c.queue.DDL())
	}
}
