package ident

import (
	"bytes"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const database = "projects/p/instances/i/databases/d"

func TestSessionRoundTrip(t *testing.T) {
	props := &spannerpb.Session{
		Labels:      map[string]string{"env": "test"},
		CreateTime:  timestamppb.Now(),
		CreatorRole: "reader",
		Multiplexed: true,
	}
	name, err := NewSession(database, props)
	require.NoError(t, err)
	other, err := NewSession(database, props)
	require.NoError(t, err)
	require.NotEqual(t, name, other, "each session has a name of its own")

	s, err := ParseSession(name)
	require.NoError(t, err)
	require.Equal(t, database, s.Database)
	require.Equal(t, database, DatabaseOf(name))
	props.Name = name
	require.True(t, proto.Equal(props, s.Props), "%v", s.Props)
}

func TestSessionsOfOthers(t *testing.T) {
	name, err := NewSession(database, nil)
	require.NoError(t, err)
	for _, bad := range []string{
		"", "x", "sessions/x", database, database + "/sessions/", "projects/p/instances/i/databases//sessions/x",
		"/sessions/" + name, "projects/p/instances/i/databases/d/e/sessions/1",
	} {
		_, err := ParseSession(bad)
		require.ErrorIs(t, err, ErrMalformed, "%q", bad)
	}
	id := ReadWrite{Front: 1, Number: 2}.ID()
	for _, foreign := range []string{
		database + "/sessions/17", name[:len(name)-1], name + "A", database + "/sessions/" + string(id),
	} {
		s, err := ParseSession(foreign)
		require.ErrorIs(t, err, ErrForeign, "%q", foreign)
		require.Equal(t, database, s.Database)
	}
}

func TestTransactionRoundTrip(t *testing.T) {
	rw, ro := Transaction(ReadWrite{Front: 7, Number: 1 << 63}.ID())
	require.Nil(t, ro)
	require.Equal(t, &ReadWrite{Front: 7, Number: 1 << 63}, rw)

	at := &timestamppb.Timestamp{Seconds: 1796051148, Nanos: 123456789}
	rw, ro = Transaction(NewReadOnly("a session", at).ID())
	require.Nil(t, rw)
	require.True(t, proto.Equal(at, ro.Time))
	require.True(t, ro.Of("a session"))
	require.False(t, ro.Of("another"))
}

func TestPartitionRoundTrip(t *testing.T) {
	ro := NewReadOnly("a session", timestamppb.Now())
	for _, token := range [][]byte{nil, {0}, bytes.Repeat([]byte("x"), 3000)} {
		p, ok := ParsePartition(Partition{Transaction: ro, Token: token}.Bytes())
		require.True(t, ok)
		require.True(t, bytes.Equal(token, p.Token))
		require.Equal(t, ro.ID(), p.Transaction.ID())
	}
}

func FuzzForeign(f *testing.F) {
	name, _ := NewSession(database, nil)
	f.Add([]byte(name))
	f.Add(ReadWrite{Front: 1, Number: 2}.ID())
	f.Add(NewReadOnly("s", timestamppb.Now()).ID())
	f.Add(Partition{Transaction: NewReadOnly("s", timestamppb.Now()), Token: []byte("t")}.Bytes())
	f.Add([]byte("999999"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := ParseSession(string(b)); err == nil && s.Props.Name != string(b) {
			t.Errorf("session %q says it is %q", b, s.Props.Name)
		}
		rw, ro := Transaction(b)
		if rw != nil && !bytes.Equal(rw.ID(), b) {
			t.Errorf("%q read as %v, which is %q", b, rw, rw.ID())
		}
		if ro != nil && !bytes.Equal(ro.ID(), b) {
			t.Errorf("%q read as %v, which is %q", b, ro, ro.ID())
		}
		if p, ok := ParsePartition(b); ok && !bytes.Equal(p.Bytes(), b) {
			t.Errorf("%q read as %v, which is %q", b, p, p.Bytes())
		}
	})
}
