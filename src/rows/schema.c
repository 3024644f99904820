/*
 * The tables, as numbered steps.
 *
 * Never edit a released step; add a new one. Times are wall-clock milliseconds. `fence` grows with
 * every claim of a row, and a result must carry the current one, so that a late worker changes
 * nothing.
 */
#include "rows/schema.h"

/* clang-format off */
const struct store_migration schema_steps[] = {
        { 1, "the road",
          "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);"

          "CREATE TABLE journal("
          " seq AUTOKEY, type TEXT NOT NULL, stream BIGINT NOT NULL, time_ms BIGINT NOT NULL,"
          " adapter TEXT, channel TEXT, thread TEXT, trace TEXT, key TEXT, payload TEXT NOT NULL);"
          "CREATE UNIQUE INDEX journal_key ON journal(adapter, key) WHERE key IS NOT NULL;"
          "CREATE TABLE cursors("
          " name TEXT PRIMARY KEY, seq BIGINT NOT NULL, updated_ms BIGINT NOT NULL);"

          "CREATE TABLE conversations("
          " id AUTOKEY, lane TEXT NOT NULL UNIQUE, adapter TEXT NOT NULL, channel TEXT NOT NULL,"
          " thread TEXT, agent TEXT NOT NULL, created_ms BIGINT NOT NULL,"
          " active_ms BIGINT NOT NULL, history_from BIGINT NOT NULL DEFAULT 0);"
          "CREATE TABLE turns("
          " id INTKEY, conversation BIGINT NOT NULL, agent TEXT NOT NULL, rule TEXT,"
          " state TEXT NOT NULL, inputs TEXT NOT NULL, trace TEXT NOT NULL,"
          " attempt BIGINT NOT NULL, fence BIGINT NOT NULL, owner TEXT,"
          " lease_ms BIGINT NOT NULL DEFAULT 0, due_ms BIGINT NOT NULL, created_ms BIGINT NOT NULL,"
          " started_ms BIGINT, ended_ms BIGINT, error_kind TEXT, error TEXT,"
          " tokens_in BIGINT NOT NULL DEFAULT 0, tokens_out BIGINT NOT NULL DEFAULT 0,"
          " cost_microusd BIGINT NOT NULL DEFAULT 0, draft BIGINT NOT NULL DEFAULT 0);"
          "CREATE INDEX turns_open ON turns(id) WHERE state IN ('queued', 'running');"
          "CREATE INDEX turns_dead ON turns(id) WHERE state = 'failed';"
          "CREATE TABLE transcript("
          " id AUTOKEY, conversation BIGINT NOT NULL, turn BIGINT NOT NULL, role TEXT NOT NULL,"
          " name TEXT, text TEXT NOT NULL, time_ms BIGINT NOT NULL);"
          "CREATE INDEX transcript_by_conversation ON transcript(conversation, id);"

          "CREATE TABLE trigger_log("
          " event INTKEY, time_ms BIGINT NOT NULL, event_type TEXT NOT NULL, adapter TEXT NOT NULL,"
          " channel TEXT, thread TEXT, sender TEXT, sender_name TEXT, agent TEXT, rule TEXT,"
          " turn BIGINT, trace TEXT NOT NULL, status TEXT NOT NULL, reason TEXT,"
          " duration_ms BIGINT, tokens_in BIGINT, tokens_out BIGINT, cost_microusd BIGINT,"
          " error TEXT);"
          "CREATE INDEX trigger_log_trace ON trigger_log(trace);"

          "CREATE TABLE deliveries("
          " id INTKEY, turn BIGINT, adapter TEXT NOT NULL, channel TEXT NOT NULL, thread TEXT,"
          " kind TEXT NOT NULL, class BIGINT NOT NULL, payload TEXT NOT NULL, state TEXT NOT NULL,"
          " attempt BIGINT NOT NULL DEFAULT 0, fence BIGINT NOT NULL DEFAULT 0, owner TEXT,"
          " lease_ms BIGINT NOT NULL DEFAULT 0, due_ms BIGINT NOT NULL,"
          " expires_ms BIGINT NOT NULL DEFAULT 0, created_ms BIGINT NOT NULL, ended_ms BIGINT,"
          " platform_id TEXT, error_kind TEXT, error TEXT, trace TEXT NOT NULL, request_key TEXT,"
          " ref BIGINT NOT NULL DEFAULT 0);"
          "CREATE INDEX deliveries_open ON deliveries(id) WHERE state IN ('queued', 'sending');"
          "CREATE INDEX deliveries_dead ON deliveries(id) WHERE state IN ('failed', 'unknown');"
          "CREATE INDEX deliveries_turn ON deliveries(turn) WHERE turn IS NOT NULL;"
          "CREATE UNIQUE INDEX deliveries_request ON deliveries(request_key)"
          " WHERE request_key IS NOT NULL;"
          "CREATE TABLE attempts("
          " delivery BIGINT NOT NULL, attempt BIGINT NOT NULL, time_ms BIGINT NOT NULL,"
          " outcome TEXT NOT NULL, detail TEXT, PRIMARY KEY (delivery, attempt));" },
        { 2, "handover",
          "CREATE TABLE paused("
          " place TEXT PRIMARY KEY, adapter TEXT NOT NULL, channel TEXT NOT NULL, thread TEXT,"
          " by_whom TEXT, reason TEXT, since_ms BIGINT NOT NULL,"
          " until_ms BIGINT NOT NULL DEFAULT 0);"
          "CREATE INDEX conversations_chat ON conversations(adapter, channel);" },
        { 3, "keys",
          "CREATE TABLE keys("
          " id AUTOKEY, name TEXT NOT NULL, prefix TEXT NOT NULL UNIQUE, hash TEXT NOT NULL,"
          " scopes TEXT NOT NULL, adapters TEXT, created_ms BIGINT NOT NULL,"
          " expires_ms BIGINT NOT NULL DEFAULT 0, used_ms BIGINT NOT NULL DEFAULT 0,"
          " revoked_ms BIGINT NOT NULL DEFAULT 0, rate_limit BIGINT NOT NULL);" },
        { 4, "sessions, commands, marks",
          "ALTER TABLE conversations ADD COLUMN person TEXT;"
          /* history begins with this turn, to hide a turn that ran during the reset */
          "ALTER TABLE conversations ADD COLUMN history_turn BIGINT NOT NULL DEFAULT 0;"
          "ALTER TABLE turns ADD COLUMN session TEXT;"
          "ALTER TABLE turns ADD COLUMN cancel TEXT;"
          "ALTER TABLE turns ADD COLUMN mark BIGINT NOT NULL DEFAULT 0;"
          "ALTER TABLE transcript ADD COLUMN session TEXT;"
          "CREATE INDEX transcript_by_session ON transcript(session, id) WHERE session IS NOT NULL;"
          /* the edit that replaced this text */
          "ALTER TABLE trigger_log ADD COLUMN changed_by BIGINT;" },
        { 5, "stored rules",
          "CREATE TABLE rules("
          " name TEXT PRIMARY KEY, position BIGINT NOT NULL, enabled BIGINT NOT NULL,"
          " rule TEXT NOT NULL, created_ms BIGINT NOT NULL, updated_ms BIGINT NOT NULL);" },
        { 6, "requests and chats",
          /* the same key with another body is a conflict */
          "ALTER TABLE deliveries ADD COLUMN request_hash TEXT;"
          /* the messages of one chat (stream 0), in order */
          "CREATE INDEX journal_chat ON journal(adapter, channel, seq) WHERE stream = 0;" },
        { 7, "windows",
          "CREATE TABLE windows("
          " place TEXT PRIMARY KEY, session TEXT NOT NULL, active_ms BIGINT NOT NULL);"
          "CREATE INDEX windows_session ON windows(session);"
          "CREATE INDEX windows_active ON windows(active_ms);" },
        { 8, "access rules",
          "CREATE TABLE access_rules("
          " id AUTOKEY, adapter TEXT, effect TEXT NOT NULL, platform_user TEXT, person BIGINT,"
          " place TEXT, enabled BIGINT NOT NULL, reason TEXT, message TEXT,"
          " expires_ms BIGINT NOT NULL DEFAULT 0, by_whom TEXT, created_ms BIGINT NOT NULL,"
          " updated_ms BIGINT NOT NULL);" },
        { 9, "reactions and costs",
          /* read at every start */
          "CREATE INDEX trigger_log_reactions ON trigger_log(event)"
          " WHERE event_type IN ('reaction.received', 'reaction.removed') AND turn IS NOT NULL;"
          "CREATE INDEX turns_cost ON turns(ended_ms) WHERE cost_microusd > 0;" },
        { 10, "pairing",
          "CREATE TABLE pairings("
          " id AUTOKEY, code TEXT NOT NULL, adapter TEXT NOT NULL, platform TEXT NOT NULL,"
          " sender TEXT NOT NULL, name TEXT, state TEXT NOT NULL, rule BIGINT,"
          " created_ms BIGINT NOT NULL, expires_ms BIGINT NOT NULL, decided_ms BIGINT,"
          " by_whom TEXT);"
          "CREATE INDEX pairings_waiting ON pairings(id) WHERE state = 'waiting';" },
        { 11, "persons",
          /* see person_row.h for aliases and homes */
          "CREATE TABLE persons("
          " id AUTOKEY, name TEXT, created_ms BIGINT NOT NULL, updated_ms BIGINT NOT NULL,"
          " merged_into BIGINT);"
          "CREATE INDEX persons_merged ON persons(merged_into) WHERE merged_into IS NOT NULL;"
          "CREATE TABLE identities("
          " id AUTOKEY, platform TEXT NOT NULL, user_id TEXT NOT NULL, person BIGINT NOT NULL,"
          " home BIGINT NOT NULL, name TEXT, username TEXT, adapter TEXT,"
          " first_seen_ms BIGINT NOT NULL, last_seen_ms BIGINT NOT NULL,"
          " UNIQUE (platform, user_id));"
          "CREATE INDEX identities_person ON identities(person, id);"
          /* direct chats */
          "CREATE TABLE identity_chats("
          " identity BIGINT NOT NULL, adapter TEXT NOT NULL, channel TEXT NOT NULL,"
          " seen_ms BIGINT NOT NULL, PRIMARY KEY (identity, adapter));" },
        { 12, "notes",
          /* lines without a turn: few among many */
          "CREATE INDEX transcript_notes ON transcript(conversation, id) WHERE turn = 0;" },
        { 13, "absent readers",
          /* events deleted before they were read */
          "ALTER TABLE cursors ADD COLUMN missed BIGINT NOT NULL DEFAULT 0;" },
        { 14, "terms of turns",
          "ALTER TABLE turns ADD COLUMN terms TEXT;" },
        { 15, "who began anew",
          /* a person anywhere (channel ''), a chat (no person), or a person in a chat */
          "CREATE TABLE anew("
          " adapter TEXT NOT NULL, channel TEXT NOT NULL, thread TEXT NOT NULL,"
          " person TEXT NOT NULL, turn BIGINT NOT NULL,"
          " PRIMARY KEY (adapter, channel, thread, person));" },
        { 16, "plain names",
          "ALTER TABLE anew RENAME TO resets;"
          "ALTER TABLE paused RENAME TO handovers;"
          "ALTER TABLE handovers RENAME COLUMN place TO chat;"
          "ALTER TABLE windows RENAME TO chat_sessions;"
          "ALTER TABLE chat_sessions RENAME COLUMN place TO chat;"
          "DROP INDEX windows_session;"
          "DROP INDEX windows_active;"
          "CREATE INDEX chat_sessions_session ON chat_sessions(session);"
          "CREATE INDEX chat_sessions_active ON chat_sessions(active_ms);"
          "ALTER TABLE turns RENAME COLUMN mark TO progress_reaction;"
          "ALTER TABLE turns RENAME COLUMN cancel TO cancel_reason;"
          "ALTER TABLE turns RENAME COLUMN terms TO reply_policy;"
          "ALTER TABLE trigger_log RENAME COLUMN changed_by TO edited_by;"
          "ALTER TABLE deliveries RENAME COLUMN ref TO edits;"
          "UPDATE deliveries SET kind = 'cancel_deferred' WHERE kind = 'withdraw';" },
        { 17, "late replies",
          /* earlier keys are reply:trn-TURN:late, :nNUMBER or :k and 32 digits */
          "ALTER TABLE deliveries ADD COLUMN reply_of BIGINT;"
          "UPDATE deliveries SET reply_of = CAST(substr(request_key, 11, length(request_key) - 10"
          " - CASE WHEN request_key LIKE '%:late' THEN 5 WHEN request_key LIKE '%:n_' THEN 3"
          " WHEN request_key LIKE '%:n__' THEN 4 WHEN request_key LIKE '%:n___' THEN 5"
          " ELSE 34 END) AS BIGINT)"
          " WHERE turn IS NULL AND request_key LIKE 'reply:trn-%';"
          "CREATE INDEX deliveries_reply ON deliveries(reply_of) WHERE reply_of IS NOT NULL;" },
        { 18, "numbers",
          "CREATE TABLE numbers(name TEXT PRIMARY KEY, next BIGINT NOT NULL);"
          "INSERT INTO numbers(name, next) SELECT 'turn', coalesce(max(id), 0) + 1 FROM turns;"
          "INSERT INTO numbers(name, next)"
          " SELECT 'delivery', coalesce(max(id), 0) + 1 FROM deliveries;" },
        { 19, "failovers",
          /* answered_by: the agent that took over; failed_agents: a JSON list of those before it */
          "ALTER TABLE turns ADD COLUMN answered_by TEXT;"
          "ALTER TABLE turns ADD COLUMN failed_agents TEXT;" },
        { 20, "keys for agents, and of keys",
          "ALTER TABLE keys ADD COLUMN agents TEXT;"
          "ALTER TABLE keys ADD COLUMN made_by BIGINT;" },
        { 21, "rules tried",
          /* a JSON list, see road/inbox/decision.h */
          "ALTER TABLE trigger_log ADD COLUMN rules TEXT;" },
        { 22, "reading back",
          /* what the adapter knew of the chat before the send */
          "ALTER TABLE deliveries ADD COLUMN read_from TEXT;" },
        { 23, "cached tokens",
          "ALTER TABLE turns ADD COLUMN tokens_cached BIGINT NOT NULL DEFAULT 0;"
          "ALTER TABLE trigger_log ADD COLUMN tokens_cached BIGINT;" },
        { 24, "discarded replies",
          /* late replies that were not posted: how many, the last one's time and reason */
          "ALTER TABLE turns ADD COLUMN discarded_replies BIGINT NOT NULL DEFAULT 0;"
          "ALTER TABLE turns ADD COLUMN discarded_ms BIGINT;"
          "ALTER TABLE turns ADD COLUMN discard_reason TEXT;" },
        { 25, "traces that are not recorded",
          "ALTER TABLE deliveries ADD COLUMN unsampled BIGINT NOT NULL DEFAULT 0;" },
        { 26, "where the journal was at a send",
          "ALTER TABLE deliveries ADD COLUMN read_seq BIGINT NOT NULL DEFAULT 0;" },
        { 27, "steps of the built-in agent",
          /* see step_row.h; first_kept: of a compaction */
          "CREATE TABLE steps("
          " id AUTOKEY, conversation BIGINT NOT NULL, turn BIGINT NOT NULL, session TEXT,"
          " agent TEXT NOT NULL, person TEXT, kind TEXT NOT NULL, call TEXT, body TEXT NOT NULL,"
          " first_kept BIGINT NOT NULL DEFAULT 0, cost_microusd BIGINT NOT NULL DEFAULT 0,"
          " time_ms BIGINT NOT NULL);"
          "CREATE INDEX steps_by_conversation ON steps(conversation, id);"
          "CREATE INDEX steps_by_session ON steps(session, id) WHERE session IS NOT NULL;"
          "CREATE INDEX steps_by_turn ON steps(turn, id);"
          /* a call starts once and ends once */
          "CREATE UNIQUE INDEX steps_call ON steps(turn, call, kind) WHERE call IS NOT NULL;"
          "CREATE INDEX steps_compactions ON steps(conversation, id) WHERE kind = 'compaction';"
          "CREATE INDEX steps_session_compactions ON steps(session, id)"
          " WHERE kind = 'compaction' AND session IS NOT NULL;"
          "CREATE INDEX steps_cost ON steps(time_ms) WHERE cost_microusd > 0;"
          /* the last attempt that stored a step */
          "ALTER TABLE turns ADD COLUMN progress_attempt BIGINT NOT NULL DEFAULT 0;" },
        { 28, "approvals",
          /* see approval_row.h; an approval has the number of the delivery that asks first */
          "CREATE TABLE approvals("
          " id BIGINT PRIMARY KEY, turn BIGINT NOT NULL, conversation BIGINT NOT NULL,"
          " agent TEXT NOT NULL, adapter TEXT NOT NULL, channel TEXT NOT NULL, thread TEXT,"
          " trace TEXT NOT NULL, call TEXT NOT NULL, tool TEXT NOT NULL, title TEXT NOT NULL,"
          " detail TEXT NOT NULL, subject TEXT NOT NULL, reason TEXT NOT NULL, effect TEXT,"
          " rule TEXT, asker TEXT, approvers TEXT NOT NULL, state TEXT NOT NULL,"
          " created_ms BIGINT NOT NULL, expires_ms BIGINT NOT NULL, decided_ms BIGINT,"
          " decided_by TEXT, note TEXT, always BIGINT NOT NULL DEFAULT 0,"
          " deliveries TEXT NOT NULL, UNIQUE (turn, call));"
          "CREATE INDEX approvals_open ON approvals(id) WHERE state = 'open';"
          /* what "always" left behind */
          "CREATE TABLE approval_rules("
          " id AUTOKEY, agent TEXT NOT NULL, adapter TEXT NOT NULL, channel TEXT NOT NULL,"
          " rule TEXT NOT NULL, approval BIGINT, made_by TEXT, created_ms BIGINT NOT NULL);" },
        { 29, "schedule",
          /* see schedule_row.h */
          "CREATE TABLE schedules("
          " id AUTOKEY, source TEXT NOT NULL, name TEXT NOT NULL, request_key TEXT UNIQUE,"
          " kind TEXT NOT NULL, action TEXT NOT NULL, adapter TEXT, channel TEXT, thread TEXT,"
          " person BIGINT, text TEXT NOT NULL, options TEXT, at_ms BIGINT, cron TEXT,"
          " timezone TEXT, missed TEXT NOT NULL, max_age_ms BIGINT NOT NULL DEFAULT 0,"
          " state TEXT NOT NULL, next_ms BIGINT, ahead_ms BIGINT, created_ms BIGINT NOT NULL,"
          " ended_ms BIGINT, created_by TEXT, trace TEXT);"
          "CREATE INDEX schedules_due ON schedules(next_ms)"
          " WHERE state = 'active' AND next_ms IS NOT NULL;"
          "CREATE INDEX schedules_periodic ON schedules(id)"
          " WHERE state = 'active' AND kind = 'periodic';"
          "CREATE INDEX schedules_person ON schedules(person, id)"
          " WHERE state = 'active' AND person IS NOT NULL;"
          "CREATE INDEX schedules_chat ON schedules(adapter, channel, id) WHERE state = 'active';"
          "CREATE INDEX schedules_ended ON schedules(ended_ms) WHERE ended_ms IS NOT NULL;"
          "CREATE INDEX schedules_files ON schedules(name)"
          " WHERE source = 'file' AND state = 'active';"
          "CREATE TABLE ticks("
          " id AUTOKEY, schedule BIGINT NOT NULL, due_ms BIGINT NOT NULL,"
          " runs BIGINT NOT NULL DEFAULT 1, state TEXT NOT NULL, not_before_ms BIGINT NOT NULL,"
          " started_ms BIGINT, ended_ms BIGINT, event BIGINT, delivery BIGINT,"
          " address BIGINT NOT NULL DEFAULT 0, note TEXT, UNIQUE (schedule, due_ms));"
          "CREATE INDEX ticks_pending ON ticks(not_before_ms) WHERE state = 'pending';"
          "CREATE INDEX ticks_running ON ticks(id) WHERE state = 'running';"
          "CREATE INDEX ticks_delivery ON ticks(delivery) WHERE delivery IS NOT NULL;"
          "CREATE INDEX ticks_ended ON ticks(ended_ms) WHERE ended_ms IS NOT NULL;"
          "CREATE INDEX identity_chats_channel ON identity_chats(adapter, channel);"
          /* how a person wants to be reached; reach_at: "adapter/channel" */
          "ALTER TABLE persons ADD COLUMN timezone TEXT;"
          "ALTER TABLE persons ADD COLUMN quiet_hours TEXT;"
          "ALTER TABLE persons ADD COLUMN daily_cap BIGINT;"
          "ALTER TABLE persons ADD COLUMN reach_at TEXT;"
          /* unasked messages on the last day that had one, a number of days since 1970 */
          "ALTER TABLE persons ADD COLUMN notice_day BIGINT;"
          "ALTER TABLE persons ADD COLUMN notice_count BIGINT;" },
        { 30, "calendar",
          /* see calendar_row.h */
          "CREATE TABLE calendar_events("
          " id AUTOKEY, uid TEXT NOT NULL UNIQUE, request_key TEXT UNIQUE, title TEXT NOT NULL,"
          " description TEXT, place TEXT, starts_ms BIGINT NOT NULL, ends_ms BIGINT NOT NULL,"
          " timezone TEXT NOT NULL, capacity BIGINT NOT NULL DEFAULT 0, state TEXT NOT NULL,"
          " adapter TEXT, platform TEXT, channel TEXT, thread TEXT,"
          " reminder_ms BIGINT NOT NULL DEFAULT 0, organizer TEXT, organizer_name TEXT,"
          " trace TEXT, version BIGINT NOT NULL DEFAULT 1,"
          " sequence BIGINT NOT NULL DEFAULT 0, created_ms BIGINT NOT NULL,"
          " updated_ms BIGINT NOT NULL, announcement BIGINT, message TEXT,"
          " announced BIGINT NOT NULL DEFAULT 0, announced_sequence BIGINT NOT NULL DEFAULT -1,"
          " reminder BIGINT, guild TEXT, platform_event TEXT, put BIGINT,"
          " puts BIGINT NOT NULL DEFAULT 0, synced BIGINT NOT NULL DEFAULT -1);"
          "CREATE INDEX calendar_events_start ON calendar_events(starts_ms, id);"
          "CREATE INDEX calendar_events_end ON calendar_events(ends_ms);"
          "CREATE INDEX calendar_events_chat ON calendar_events(adapter, channel, starts_ms);"
          "CREATE INDEX calendar_events_message ON calendar_events(adapter, message)"
          " WHERE message IS NOT NULL;"
          "CREATE INDEX calendar_events_behind ON calendar_events(id)"
          " WHERE (channel IS NOT NULL AND announced < version)"
          " OR (announcement IS NOT NULL AND message IS NULL)"
          " OR (guild IS NOT NULL AND synced < sequence) OR put IS NOT NULL;"
          "CREATE UNIQUE INDEX calendar_events_platform ON calendar_events(adapter, platform_event)"
          " WHERE platform_event IS NOT NULL;"
          /* user_id: a person; NULL: an external account of which nothing more is known */
          "CREATE TABLE calendar_members("
          " id AUTOKEY, event BIGINT NOT NULL, user_id BIGINT, external_source TEXT NOT NULL,"
          " external_id TEXT NOT NULL, display_name TEXT, status TEXT NOT NULL,"
          " queue_no BIGINT, since_ms BIGINT NOT NULL, reminder BIGINT, interest TEXT,"
          " UNIQUE (event, external_source, external_id));"
          "CREATE INDEX calendar_members_user ON calendar_members(user_id, event)"
          " WHERE user_id IS NOT NULL;"
          "CREATE INDEX calendar_members_waiting ON calendar_members(event, queue_no)"
          " WHERE queue_no IS NOT NULL;" },
        { 31, "sessions",
          /* see session_row.h; owner: the key that reported it first */
          "CREATE TABLE sessions("
          " id AUTOKEY, session TEXT NOT NULL UNIQUE, owner BIGINT NOT NULL, identity TEXT,"
          " program TEXT, host TEXT, cwd TEXT, title TEXT, model TEXT, state TEXT NOT NULL,"
          " adapter TEXT, channel TEXT, thread TEXT, trace TEXT NOT NULL,"
          " turns BIGINT NOT NULL DEFAULT 0, tokens BIGINT NOT NULL DEFAULT 0,"
          " cost_microusd BIGINT NOT NULL DEFAULT 0, created_ms BIGINT NOT NULL,"
          " last_event_ms BIGINT NOT NULL, ended_ms BIGINT);"
          "CREATE INDEX sessions_quiet ON sessions(last_event_ms) WHERE state = 'active';"
          "CREATE INDEX sessions_old ON sessions(last_event_ms) WHERE state <> 'active';"
          "CREATE TABLE session_commands("
          " id AUTOKEY, command TEXT NOT NULL UNIQUE, session BIGINT NOT NULL,"
          " request_key TEXT UNIQUE, action TEXT NOT NULL, content TEXT NOT NULL,"
          " state TEXT NOT NULL, given_by TEXT NOT NULL, display_name TEXT,"
          " adapter TEXT, channel TEXT, thread TEXT, message TEXT,"
          " approval TEXT, decision TEXT, reason TEXT, error TEXT,"
          " created_ms BIGINT NOT NULL, expires_ms BIGINT NOT NULL, delivered_ms BIGINT,"
          " ended_ms BIGINT, receipt TEXT);"
          "CREATE INDEX session_commands_session ON session_commands(session, id);"
          "CREATE INDEX session_commands_queued ON session_commands(expires_ms)"
          " WHERE state = 'queued';"
          "CREATE INDEX session_commands_created ON session_commands(created_ms);"
          /* questions of a session to a person; delivery: the message that asks */
          "CREATE TABLE session_approvals("
          " id AUTOKEY, session BIGINT NOT NULL, approval TEXT NOT NULL, tool TEXT,"
          " content TEXT NOT NULL, reason TEXT, fallback TEXT, state TEXT NOT NULL,"
          " decided_by TEXT, created_ms BIGINT NOT NULL, expires_ms BIGINT, ended_ms BIGINT,"
          " delivery BIGINT, UNIQUE (session, approval));"
          "CREATE INDEX session_approvals_created ON session_approvals(created_ms);"
          /* what a person wants to hear of sessions: all, errors, end, mentions, off */
          "ALTER TABLE persons ADD COLUMN session_notify TEXT;" },
        { 32, "child sessions",
          /* see agent_session_row.h; later agent_sessions */
          "CREATE TABLE child_sessions("
          " id AUTOKEY, agent TEXT NOT NULL, name TEXT NOT NULL, session TEXT NOT NULL,"
          " turn BIGINT NOT NULL, used_ms BIGINT NOT NULL, UNIQUE (agent, name));"
          "CREATE INDEX child_sessions_used ON child_sessions(used_ms);" },
        { 33, "session views",
          /* what a chat shows of a session, see session_view_row.h */
          "CREATE TABLE session_views("
          " session BIGINT PRIMARY KEY, adapter TEXT NOT NULL, channel TEXT NOT NULL, thread TEXT,"
          " own_thread TEXT, root BIGINT NOT NULL DEFAULT 0,"
          " root_shown TEXT, place BIGINT NOT NULL DEFAULT 0, closed BIGINT NOT NULL DEFAULT 0,"
          " page BIGINT NOT NULL DEFAULT 0, page_from BIGINT NOT NULL DEFAULT 0,"
          " shown_seq BIGINT NOT NULL DEFAULT 0, last BIGINT NOT NULL DEFAULT 0,"
          " failures BIGINT NOT NULL DEFAULT 0, error TEXT, used_ms BIGINT NOT NULL);"
          "CREATE INDEX session_views_thread ON session_views(own_thread)"
          " WHERE own_thread IS NOT NULL;"
          /* messages that show a session where it has no thread: a reply to one steers it */
          "CREATE TABLE session_messages("
          " id AUTOKEY, session BIGINT NOT NULL, adapter TEXT NOT NULL, channel TEXT NOT NULL,"
          " message TEXT NOT NULL, root BIGINT NOT NULL, created_ms BIGINT NOT NULL,"
          " UNIQUE (adapter, channel, message));"
          "CREATE INDEX session_messages_session ON session_messages(session, id);"
          /* the events of one session (stream 4), in order */
          "CREATE INDEX journal_session ON journal(trace, seq) WHERE stream = 4;"
          /* what its message says now: the state and who decided */
          "ALTER TABLE session_approvals ADD COLUMN shown TEXT;"
          "CREATE INDEX session_approvals_open ON session_approvals(expires_ms)"
          " WHERE state = 'open';" },
        { 34, "a2a",
          /* not only of agents that are started */
          "ALTER TABLE child_sessions RENAME TO agent_sessions;"
          /* see a2a_turn_row.h */
          "CREATE TABLE a2a_turns("
          " turn BIGINT PRIMARY KEY, agent TEXT NOT NULL, name TEXT NOT NULL,"
          " message TEXT NOT NULL, task TEXT NOT NULL, goes_on BIGINT NOT NULL,"
          " open BIGINT NOT NULL, since TEXT NOT NULL, used_ms BIGINT NOT NULL);"
          "CREATE INDEX a2a_turns_open ON a2a_turns(agent, name) WHERE open = 1;"
          "CREATE INDEX a2a_turns_used ON a2a_turns(used_ms);" },
        { 35, "responses of a turn",
          /* shown so far, while the turn of the session has not ended */
          "ALTER TABLE session_views ADD COLUMN open_tokens BIGINT NOT NULL DEFAULT 0;"
          "ALTER TABLE session_views ADD COLUMN open_cost_microusd BIGINT NOT NULL DEFAULT 0;" },
        { 36, "names of session threads",
          /* what the thread is called, and since when, if not from the beginning */
          "ALTER TABLE session_views ADD COLUMN named TEXT;"
          "ALTER TABLE session_views ADD COLUMN renamed_ms BIGINT NOT NULL DEFAULT 0;"
          /* why it was decided so */
          "ALTER TABLE session_approvals ADD COLUMN note TEXT;" },
        { 37, "what a session message shows",
          /* events up to here are certainly in the message that grows */
          "ALTER TABLE session_views ADD COLUMN page_shown BIGINT NOT NULL DEFAULT 0;"
          "UPDATE session_views SET page_shown = shown_seq;" },
        { 38, "turns of started agents",
          /* of the turn, not of its session: the next turn may be given before this one's end */
          "ALTER TABLE turns ADD COLUMN given_to TEXT;"
          "UPDATE turns SET given_to = coalesce(answered_by, agent) WHERE state = 'running'"
          " AND id IN (SELECT turn FROM agent_sessions);"
          "ALTER TABLE agent_sessions DROP COLUMN turn;" },
        { 0, NULL, NULL },
};
/* clang-format on */
