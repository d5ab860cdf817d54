import {Spanner} from '@google-cloud/spanner';

const spanner = new Spanner({projectId: 'test'});
const [instance, creating] = await spanner.createInstance('test', {config: 'emulator-config', nodes: 1});
await creating.promise();
const [database, operation] = await instance.createDatabase('shop', {schema: [
  'CREATE QUEUE Orders (Id INT64 NOT NULL, Payload STRING(MAX) NOT NULL) PRIMARY KEY (Id)',
  'CREATE TABLE Shipped (Id INT64 NOT NULL) PRIMARY KEY (Id)',
]});
await operation.promise();

await database.runTransactionAsync(async tx => {
  tx.queueSend('Orders', [1], {payload: 'two apples'});
  await tx.commit();
});

const sql = "SELECT Id, Payload FROM RECEIVE_Orders(max_duration => '20s')";
for await (const {Id, Payload} of database.runStream({sql, json: true})) {
  await database.runTransactionAsync(async tx => {
    try {
      // The message goes and its effect comes in one commit. A message that is gone already fails it all.
      await tx.runUpdate({sql: 'DELETE FROM Orders WHERE Id = @Id ASSERT_ROWS_MODIFIED 1', params: {Id}});
      tx.insert('Shipped', {Id});
      await tx.commit();
    } catch (err) {
      await tx.rollback(); // the client does not do this by itself
      throw err;
    }
  });
  console.log(`order ${Id}: ${Payload}`);
  break;
}
process.exit(); // ends the receive query, too: the client has no way to cancel one
