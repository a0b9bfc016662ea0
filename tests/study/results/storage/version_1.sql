BEGIN TRANSACTION;
CREATE TABLE clocks (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (run),
        device TEXT NOT NULL,
        host_ns INTEGER NOT NULL,
        device_ticks INTEGER,
        deviation_ns REAL,
        ns_per_tick REAL,
        calibrated INTEGER,
        frequency_mhz REAL,
        memory_mhz REAL,
        cpu_mhz REAL,
        temperature_c REAL,
        power_w REAL,
        throttle TEXT
    );
INSERT INTO "clocks" VALUES(1,1,'lavapipe',1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE devices (
        run INTEGER NOT NULL REFERENCES runs (run),
        device TEXT NOT NULL,
        name TEXT NOT NULL,
        driver TEXT NOT NULL,
        facts TEXT NOT NULL,
        PRIMARY KEY (run, device)
    ) WITHOUT ROWID;
INSERT INTO "devices" VALUES(1,'lavapipe','llvmpipe','Mesa','{}');
CREATE TABLE notes (
        id INTEGER PRIMARY KEY,
        run INTEGER REFERENCES runs (run),
        point INTEGER REFERENCES points (point),
        created TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL
    );
INSERT INTO "notes" VALUES(1,1,NULL,'2026-11-23T07:46:10.529+00:00','warning','warm');
CREATE TABLE peaks (
        run INTEGER NOT NULL REFERENCES runs (run),
        device TEXT NOT NULL,
        name TEXT NOT NULL,
        value REAL NOT NULL,
        details TEXT NOT NULL,
        PRIMARY KEY (run, device, name)
    ) WITHOUT ROWID;
INSERT INTO "peaks" VALUES(1,'lavapipe','GB/s',10.0,'{}');
CREATE TABLE points (
        point INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        target TEXT NOT NULL,
        device TEXT NOT NULL,
        axes TEXT NOT NULL,
        settings TEXT NOT NULL,
        derived TEXT NOT NULL,
        measure TEXT NOT NULL,
        baseline INTEGER REFERENCES points (point),
        is_baseline INTEGER NOT NULL
    );
INSERT INTO "points" VALUES(0,'["saxpy",{"n":1}]','saxpy','lavapipe','{"n":1}','{"batch":1}','{}','execute',1,0);
INSERT INTO "points" VALUES(1,'["empty kernel",{}]','empty kernel','lavapipe','{}','{}','{}','execute',NULL,1);
CREATE TABLE reference_samples (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (run),
        device TEXT NOT NULL,
        started_ns INTEGER NOT NULL,
        duration_ns REAL NOT NULL
    );
INSERT INTO "reference_samples" VALUES(1,1,'lavapipe',1,2.0);
CREATE TABLE run_ends (
        run INTEGER PRIMARY KEY REFERENCES runs (run),
        ended TEXT NOT NULL,
        outcome TEXT NOT NULL
    );
INSERT INTO "run_ends" VALUES(1,'2026-11-23T07:46:10.529+00:00','interrupted');
CREATE TABLE runs (
        run INTEGER PRIMARY KEY,
        started TEXT NOT NULL,
        pumice TEXT NOT NULL,
        python TEXT NOT NULL,
        host TEXT NOT NULL,
        pid INTEGER NOT NULL,
        command TEXT NOT NULL,
        environment TEXT NOT NULL
    );
INSERT INTO "runs" VALUES(1,'2026-11-23T07:46:10.528+00:00','0.1.0','3.11.7','host',1,'pumice study run','{"pumice":"0.1.0"}');
CREATE TABLE samples (
        point INTEGER NOT NULL REFERENCES points (point),
        number INTEGER NOT NULL,
        run INTEGER NOT NULL REFERENCES runs (run),
        block INTEGER NOT NULL,
        phase TEXT NOT NULL CHECK (phase IN ('first', 'warmup', 'sample')),
        flags INTEGER NOT NULL,
        started_ns INTEGER NOT NULL,
        total_ns REAL NOT NULL,
        create_ns REAL,
        update_ns REAL,
        record_ns REAL,
        submit_ns REAL,
        queue_ns REAL,
        execute_ns REAL,
        wake_ns REAL,
        read_ns REAL,
        device_ns REAL,
        overlap_ns REAL,
        deviation_ns REAL,
        device_begin INTEGER,
        device_end INTEGER,
        dispatches INTEGER NOT NULL,
        preemptions INTEGER,
        stage TEXT NOT NULL,
        barrier TEXT NOT NULL,
        PRIMARY KEY (point, number)
    ) WITHOUT ROWID;
INSERT INTO "samples" VALUES(0,0,1,0,'first',0,100,100.0,NULL,NULL,NULL,NULL,NULL,50.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'','single');
INSERT INTO "samples" VALUES(0,1,1,1,'sample',1,200,100.0,NULL,NULL,NULL,NULL,NULL,50.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'','single');
INSERT INTO "samples" VALUES(0,2,1,1,'sample',0,201,101.0,NULL,NULL,NULL,NULL,NULL,50.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'','single');
INSERT INTO "samples" VALUES(0,3,1,1,'sample',2,202,102.0,NULL,NULL,NULL,NULL,NULL,50.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'','single');
CREATE TABLE statuses (
        id INTEGER PRIMARY KEY,
        point INTEGER NOT NULL REFERENCES points (point),
        run INTEGER NOT NULL REFERENCES runs (run),
        changed TEXT NOT NULL,
        status TEXT NOT NULL,
        reason TEXT NOT NULL
    );
INSERT INTO "statuses" VALUES(1,0,1,'2026-11-23T07:46:10.529+00:00','sampling','');
CREATE TABLE study (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        created TEXT NOT NULL,
        format INTEGER NOT NULL,
        name TEXT NOT NULL,
        study TEXT NOT NULL,
        toml TEXT
    );
INSERT INTO "study" VALUES(1,'2026-11-23T07:46:10.524+00:00',1,'copy-sizes','{"version":1,"name":"copy-sizes","targets":[{"name":"saxpy","kind":"kernel","source":"saxpy.comp"}]}',NULL);
CREATE TRIGGER study_no_update BEFORE UPDATE ON study BEGIN SELECT RAISE(ABORT, 'results are append-only: study'); END;
CREATE TRIGGER study_no_delete BEFORE DELETE ON study BEGIN SELECT RAISE(ABORT, 'results are append-only: study'); END;
CREATE TRIGGER study_no_replace BEFORE INSERT ON study WHEN EXISTS (SELECT 1 FROM study WHERE id = NEW.id) BEGIN SELECT RAISE(ABORT, 'results are append-only: study'); END;
CREATE TRIGGER points_no_update BEFORE UPDATE ON points BEGIN SELECT RAISE(ABORT, 'results are append-only: points'); END;
CREATE TRIGGER points_no_delete BEFORE DELETE ON points BEGIN SELECT RAISE(ABORT, 'results are append-only: points'); END;
CREATE TRIGGER points_no_replace BEFORE INSERT ON points WHEN EXISTS (SELECT 1 FROM points WHERE point = NEW.point) BEGIN SELECT RAISE(ABORT, 'results are append-only: points'); END;
CREATE TRIGGER runs_no_update BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'results are append-only: runs'); END;
CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'results are append-only: runs'); END;
CREATE TRIGGER runs_no_replace BEFORE INSERT ON runs WHEN EXISTS (SELECT 1 FROM runs WHERE run = NEW.run) BEGIN SELECT RAISE(ABORT, 'results are append-only: runs'); END;
CREATE TRIGGER run_ends_no_update BEFORE UPDATE ON run_ends BEGIN SELECT RAISE(ABORT, 'results are append-only: run_ends'); END;
CREATE TRIGGER run_ends_no_delete BEFORE DELETE ON run_ends BEGIN SELECT RAISE(ABORT, 'results are append-only: run_ends'); END;
CREATE TRIGGER run_ends_no_replace BEFORE INSERT ON run_ends WHEN EXISTS (SELECT 1 FROM run_ends WHERE run = NEW.run) BEGIN SELECT RAISE(ABORT, 'results are append-only: run_ends'); END;
CREATE TRIGGER devices_no_update BEFORE UPDATE ON devices BEGIN SELECT RAISE(ABORT, 'results are append-only: devices'); END;
CREATE TRIGGER devices_no_delete BEFORE DELETE ON devices BEGIN SELECT RAISE(ABORT, 'results are append-only: devices'); END;
CREATE TRIGGER devices_no_replace BEFORE INSERT ON devices WHEN EXISTS (SELECT 1 FROM devices WHERE run = NEW.run AND device = NEW.device) BEGIN SELECT RAISE(ABORT, 'results are append-only: devices'); END;
CREATE TRIGGER samples_no_update BEFORE UPDATE ON samples BEGIN SELECT RAISE(ABORT, 'results are append-only: samples'); END;
CREATE TRIGGER samples_no_delete BEFORE DELETE ON samples BEGIN SELECT RAISE(ABORT, 'results are append-only: samples'); END;
CREATE TRIGGER samples_no_replace BEFORE INSERT ON samples WHEN EXISTS (SELECT 1 FROM samples WHERE point = NEW.point AND number = NEW.number) BEGIN SELECT RAISE(ABORT, 'results are append-only: samples'); END;
CREATE TRIGGER statuses_no_update BEFORE UPDATE ON statuses BEGIN SELECT RAISE(ABORT, 'results are append-only: statuses'); END;
CREATE TRIGGER statuses_no_delete BEFORE DELETE ON statuses BEGIN SELECT RAISE(ABORT, 'results are append-only: statuses'); END;
CREATE TRIGGER statuses_no_replace BEFORE INSERT ON statuses WHEN EXISTS (SELECT 1 FROM statuses WHERE id = NEW.id) BEGIN SELECT RAISE(ABORT, 'results are append-only: statuses'); END;
CREATE TRIGGER clocks_no_update BEFORE UPDATE ON clocks BEGIN SELECT RAISE(ABORT, 'results are append-only: clocks'); END;
CREATE TRIGGER clocks_no_delete BEFORE DELETE ON clocks BEGIN SELECT RAISE(ABORT, 'results are append-only: clocks'); END;
CREATE TRIGGER clocks_no_replace BEFORE INSERT ON clocks WHEN EXISTS (SELECT 1 FROM clocks WHERE id = NEW.id) BEGIN SELECT RAISE(ABORT, 'results are append-only: clocks'); END;
CREATE TRIGGER reference_samples_no_update BEFORE UPDATE ON reference_samples BEGIN SELECT RAISE(ABORT, 'results are append-only: reference_samples'); END;
CREATE TRIGGER reference_samples_no_delete BEFORE DELETE ON reference_samples BEGIN SELECT RAISE(ABORT, 'results are append-only: reference_samples'); END;
CREATE TRIGGER reference_samples_no_replace BEFORE INSERT ON reference_samples WHEN EXISTS (SELECT 1 FROM reference_samples WHERE id = NEW.id) BEGIN SELECT RAISE(ABORT, 'results are append-only: reference_samples'); END;
CREATE TRIGGER peaks_no_update BEFORE UPDATE ON peaks BEGIN SELECT RAISE(ABORT, 'results are append-only: peaks'); END;
CREATE TRIGGER peaks_no_delete BEFORE DELETE ON peaks BEGIN SELECT RAISE(ABORT, 'results are append-only: peaks'); END;
CREATE TRIGGER peaks_no_replace BEFORE INSERT ON peaks WHEN EXISTS (SELECT 1 FROM peaks WHERE run = NEW.run AND device = NEW.device AND name = NEW.name) BEGIN SELECT RAISE(ABORT, 'results are append-only: peaks'); END;
CREATE TRIGGER notes_no_update BEFORE UPDATE ON notes BEGIN SELECT RAISE(ABORT, 'results are append-only: notes'); END;
CREATE TRIGGER notes_no_delete BEFORE DELETE ON notes BEGIN SELECT RAISE(ABORT, 'results are append-only: notes'); END;
CREATE TRIGGER notes_no_replace BEFORE INSERT ON notes WHEN EXISTS (SELECT 1 FROM notes WHERE id = NEW.id) BEGIN SELECT RAISE(ABORT, 'results are append-only: notes'); END;
CREATE INDEX statuses_of_point ON statuses (point, id);
CREATE VIEW point_status AS
    SELECT points.point AS point, coalesce(statuses.status, 'pending') AS status,
           coalesce(statuses.reason, '') AS reason, statuses.run AS run, statuses.changed AS changed
    FROM points LEFT JOIN statuses
         ON statuses.id = (SELECT max(id) FROM statuses AS latest WHERE latest.point = points.point);
COMMIT;
PRAGMA application_id = 1886743913;
PRAGMA user_version = 1;
