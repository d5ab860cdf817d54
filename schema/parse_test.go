package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// tasks is the queue that the forms of F33 all declare.
func tasks() Queue {
	return Queue{
		Name: "UserTasks",
		KeyColumns: []Column{
			{Name: "UserId", Type: Int64(), NotNull: true},
			{Name: "MessageId", Type: String(36), NotNull: true},
		},
		Payload:    Bytes(Max),
		PrimaryKey: []KeyPart{{Column: "UserId"}, {Column: "MessageId"}},
		Options:    QueueOptions{ReceiveMode: "PULL"},
	}
}

func TestF33FormsGiveTheSameQueue(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"as documented": `CREATE QUEUE UserTasks (
			UserId INT64 NOT NULL,
			MessageId STRING(36) NOT NULL, -- UUID recommended
			Payload BYTES(MAX) NOT NULL -- Also: Proto, JSON, String are possible.
		) PRIMARY KEY (UserId, MessageId), OPTIONS (receive_mode = 'PULL')`,
		"lower case":      "create queue UserTasks (UserId int64 not null, MessageId string(36) not null, payload bytes(max) not null) primary key (UserId, MessageId), options (receive_mode='PULL')",
		"mixed case":      `CREATE Queue UserTasks (UserId Int64 Not Null, MessageId String(36) NOT null, PAYLOAD Bytes(Max) NOT NULL) Primary KEY (userid ASC, MESSAGEID asc), Options (Receive_Mode='PULL')`,
		"back-quotes":     "create queue `UserTasks` (`UserId` int64 not null, `MessageId` string(36) not null, `Payload` bytes(max) not null) primary key (`UserId`, `MessageId`), options (receive_mode='PULL')",
		"trailing comma":  `CREATE QUEUE UserTasks (UserId INT64 NOT NULL, MessageId STRING(36) NOT NULL, Payload BYTES(MAX) NOT NULL,) PRIMARY KEY(UserId, MessageId), OPTIONS(receive_mode='PULL')`,
		"double quotes":   `CREATE QUEUE UserTasks (UserId INT64 NOT NULL, MessageId STRING(36) NOT NULL, Payload BYTES(MAX) NOT NULL, ) PRIMARY KEY(UserId, MessageId), OPTIONS(receive_mode= "PULL")`,
		"leading comment": "-- CREATE TABLE x\n# another\n/* ; */ CREATE /* TABLE */ QUEUE UserTasks (UserId INT64 NOT NULL, MessageId STRING(36) NOT NULL, Payload BYTES(MAX) NOT NULL) PRIMARY KEY (UserId, MessageId), OPTIONS (receive_mode='PULL')",
		"semicolon":       "CREATE QUEUE UserTasks (UserId INT64 NOT NULL, MessageId STRING(0x24) NOT NULL, Payload BYTES(MAX) NOT NULL) PRIMARY KEY (UserId, MessageId), OPTIONS (receive_mode='PULL') ; -- end\n",
		"payload first":   "CREATE QUEUE UserTasks (Payload BYTES(MAX) NOT NULL, UserId INT64 NOT NULL, MessageId STRING(36) NOT NULL) PRIMARY KEY (UserId, MessageId), OPTIONS (receive_mode='PULL')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, err := ParseStatement(sql)
			require.NoError(t, err)
			require.Equal(t, &CreateQueue{Queue: tasks()}, st)
		})
	}
}

func TestParseEveryClause(t *testing.T) {
	t.Parallel()
	st, err := ParseStatement(`CREATE QUEUE IF NOT EXISTS q (
		Shard INT64 AS (MOD(FARM_FINGERPRINT(Id), 8)) STORED HIDDEN,
		Id STRING(MAX),
		SentAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),
		Payload shop.v1.` + "`Order`" + ` NOT NULL HIDDEN OPTIONS (allow_commit_timestamp = null),
	) PRIMARY KEY (Shard, id DESC, SentAt),
	INTERLEAVE IN PARENT Parents ON DELETE CASCADE,
	ROW DELETION POLICY (OLDER_THAN(delivertime, INTERVAL 7 DAY)),
	OPTIONS (receive_mode = 'PULL', disable_send = true, disable_delivery = false, locality_group = "cold")`)
	require.NoError(t, err)
	require.Equal(t, &CreateQueue{
		IfNotExists: true,
		Queue: Queue{
			Name: "q",
			KeyColumns: []Column{
				{Name: "Shard", Type: Int64(), Generated: "MOD(FARM_FINGERPRINT(Id), 8)", Hidden: true},
				{Name: "Id", Type: String(Max)},
				{Name: "SentAt", Type: Timestamp(), NotNull: true, AllowCommitTimestamp: true},
			},
			Payload:       Proto("shop.v1.Order"),
			PayloadHidden: true,
			PrimaryKey:    []KeyPart{{Column: "Shard"}, {Column: "Id", Desc: true}, {Column: "SentAt"}},
			Interleave:    Interleave{Table: "Parents", InParent: true, OnDelete: Cascade},
			RowDeletion:   RowDeletion{Column: "DeliverTime", Days: 7},
			Options:       QueueOptions{ReceiveMode: "PULL", DisableSend: true, LocalityGroup: "cold"},
		},
	}, st)
}
