import SQLiteStorage

extension Database.Schema {
    /// One database per hub, so that each hub has its own writer, index and number space.
    ///
    /// `registration.handle_key` is a stable hash of platform and handle; equal keys are compared by the record.
    /// `registration.installation` is set for the rows that stand for an installation; `expires` is null for never.
    /// `job.done` counts the lines of an import that are done; `job_line` holds their results until the files are written.
    /// `send.handles` holds the devices of a direct send.
    /// `send.live` is 1 until every block is finished, 2 while targets wait for another try, then 0; `send.due` is when to go on with it.
    static let hub = Database.Schema([
        """
        CREATE TABLE registration (
            number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, handle_key INTEGER NOT NULL,
            change INTEGER NOT NULL, record BLOB NOT NULL);
        CREATE INDEX registration_handle ON registration (handle_key, number);
        CREATE TABLE freed (number INTEGER PRIMARY KEY, change INTEGER NOT NULL);
        CREATE INDEX freed_change ON freed (change);
        CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
        INSERT INTO counter VALUES ('change', 0), ('number', 0);
        CREATE TABLE send (
            id TEXT PRIMARY KEY, enqueued INTEGER NOT NULL, format TEXT NOT NULL, tags TEXT NOT NULL,
            headers BLOB NOT NULL, body BLOB NOT NULL, state TEXT NOT NULL, live INTEGER NOT NULL,
            started INTEGER, ended INTEGER, change INTEGER, audience BLOB, target_count INTEGER NOT NULL DEFAULT 0);
        CREATE INDEX send_live ON send (enqueued) WHERE live = 1;
        CREATE INDEX send_ended ON send (ended) WHERE live = 0;
        CREATE TABLE finished_block (
            send TEXT NOT NULL REFERENCES send (id) ON DELETE CASCADE, block INTEGER NOT NULL,
            PRIMARY KEY (send, block)) WITHOUT ROWID;
        CREATE TABLE outcome (
            send TEXT NOT NULL REFERENCES send (id) ON DELETE CASCADE, platform TEXT NOT NULL, name TEXT NOT NULL,
            count INTEGER NOT NULL, PRIMARY KEY (send, platform, name)) WITHOUT ROWID
        """,
        """
        CREATE TABLE retry (
            send TEXT NOT NULL REFERENCES send (id) ON DELETE CASCADE, number INTEGER NOT NULL, platform TEXT NOT NULL,
            attempts INTEGER NOT NULL, due INTEGER NOT NULL, PRIMARY KEY (send, number)) WITHOUT ROWID;
        CREATE INDEX retry_due ON retry (send, due);
        DROP INDEX send_live;
        CREATE INDEX send_live ON send (enqueued) WHERE live > 0
        """,
        """
        ALTER TABLE send ADD COLUMN scheduled INTEGER;
        ALTER TABLE send ADD COLUMN trace TEXT;
        CREATE INDEX send_scheduled ON send (scheduled) WHERE state = 'Scheduled'
        """,
        """
        ALTER TABLE send ADD COLUMN due INTEGER;
        UPDATE send SET due = CASE live
            WHEN 2 THEN coalesce((SELECT MIN(retry.due) FROM retry WHERE retry.send = send.id), enqueued)
            ELSE coalesce(scheduled, enqueued) END WHERE live > 0;
        DROP INDEX send_live;
        CREATE INDEX send_due ON send (due) WHERE live > 0;
        CREATE INDEX send_change ON send (change) WHERE live > 0 AND change IS NOT NULL
        """,
        """
        CREATE TABLE installation (
            id TEXT PRIMARY KEY, is_managed INTEGER NOT NULL, expires INTEGER, record BLOB NOT NULL);
        CREATE INDEX installation_expires ON installation (expires) WHERE expires IS NOT NULL;
        ALTER TABLE registration ADD COLUMN installation TEXT;
        ALTER TABLE registration ADD COLUMN expires INTEGER;
        CREATE INDEX registration_installation ON registration (installation) WHERE installation IS NOT NULL;
        CREATE INDEX registration_expires ON registration (expires) WHERE expires IS NOT NULL;
        ALTER TABLE send ADD COLUMN handles BLOB
        """,
        """
        CREATE TABLE job (
            id TEXT PRIMARY KEY, kind TEXT NOT NULL, status TEXT NOT NULL, progress INTEGER NOT NULL, output TEXT NOT NULL,
            input TEXT, properties BLOB NOT NULL, failure TEXT, created INTEGER NOT NULL, updated INTEGER NOT NULL,
            is_live INTEGER NOT NULL, done INTEGER NOT NULL);
        CREATE INDEX job_live ON job (created) WHERE is_live = 1;
        CREATE TABLE job_line (
            job TEXT NOT NULL REFERENCES job (id) ON DELETE CASCADE, failed INTEGER NOT NULL, number INTEGER NOT NULL,
            text TEXT NOT NULL, PRIMARY KEY (job, failed, number)) WITHOUT ROWID;
        CREATE TABLE feedback (
            place INTEGER PRIMARY KEY AUTOINCREMENT, send TEXT NOT NULL, time INTEGER NOT NULL, platform TEXT NOT NULL,
            handle TEXT NOT NULL, registration TEXT NOT NULL, installation TEXT, outcome TEXT NOT NULL, reason TEXT NOT NULL);
        CREATE INDEX feedback_send ON feedback (send);
        CREATE INDEX feedback_time ON feedback (time)
        """,
    ])
}
