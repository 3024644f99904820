/* Coding sessions over the API: reported, shown, steered, and hidden from other keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/api_rig.h"
#include "base/json.h"
#include "base/mem.h"
#include "remote/remote_private.h"
#include "rows/session_row.h"
#include "rows/session_view_row.h"

#define EVENT    "/api/webhook/event"
#define POLL     "/api/commands/poll?session_id="
#define SESSIONS "/api/v2/sessions"
#define START                                                                       \
        "{\"session_id\":\"s1\",\"event_type\":\"session_start\",\"content\":\"\"," \
        "\"metadata\":{\"cwd\":\"/src\",\"program\":\"pi\",\"title\":\"fix it\"},"  \
        "\"timestamp\":\"2026-01-01T00:00:00Z\",\"event_id\":\"1\"}"

static void expect_as(struct api_rig *r, const char *headers, const char *method, const char *path,
                      const char *body, int status, const char *part)
{
        struct api_answer a = api_rig_ask_as(r, method, path, headers, body);

        if (a.status != status || (part && !strstr(a.text, part)))
                fail_msg("%s %s: wanted %d and '%s', got %s", method, path, status,
                         part ? part : "", a.text);
        api_answer_release(&a);
}

/* Gives a command and returns its id, yours to free. */
static char *steer(struct api_rig *r, const char *session, const char *body)
{
        char *path = mem_printf(SESSIONS "/%s/commands", session), *id;
        struct api_answer a = api_rig_ask(r, "POST", path, body);

        if (a.status != 201)
                fail_msg("%s", a.text);
        id = mem_strdup(json_str(json_object_get(a.json, "data"), "id", ""));
        api_answer_release(&a);
        free(path);
        return id;
}

static void acknowledge(struct api_rig *r, const char *id, const char *body, int status,
                        const char *part)
{
        char *path = mem_printf("/api/commands/%s/ack", id);

        api_rig_expect(r, "POST", path, body, status, part);
        free(path);
}

/* ---- events ---- */

static void ask_approval(struct api_rig *r)
{
        api_rig_expect(r, "POST", EVENT,
                       "{\"session_id\":\"s1\",\"event_type\":\"approval_request\",\"tool_name\":"
                       "\"bash\",\"content\":\"rm x\",\"metadata\":{\"approval_id\":\"a1\","
                       "\"default\":\"deny\",\"timeoutMs\":60000}}",
                       200, "\"accepted\":1");
        assert_int_equal(api_rig_count(r, "session_approvals WHERE approval = 'a1' AND"
                                          " state = 'open' AND fallback = 'deny'"),
                         1);
}

static void an_event_is_stored_before_its_answer(void **state)
{
        struct api_rig *r = *state;

        api_rig_expect(r, "POST", EVENT, START, 200, "\"accepted\":1,\"duplicates\":0");
        assert_int_equal(api_rig_count(r, "journal WHERE type = 'session.session_start'"), 1);
        assert_int_equal(api_rig_count(r, "sessions WHERE session = 's1' AND cwd = '/src'"
                                          " AND state = 'active' AND title = 'fix it'"),
                         1);
        api_rig_expect(r, "GET", "/api/v2/events?type=session.session_start", NULL, 200,
                       "\"timestamp\":\"2026-01-01T00:00:00Z\"");
}

static void a_repeated_event_is_stored_once(void **state)
{
        struct api_rig *r = *state;

        api_rig_expect(r, "POST", EVENT, START, 200, "\"accepted\":1,\"duplicates\":0");
        api_rig_expect(r, "POST", "/webhook/omp-event", START, 200,
                       "\"accepted\":0,\"duplicates\":1");
        /* the same id in another session is another event */
        api_rig_expect(r, "POST", EVENT,
                       "[" START ",{\"session_id\":\"s2\",\"event_type\":\"message\","
                       "\"event_id\":\"1\"}]",
                       200, "\"accepted\":1,\"duplicates\":1");
        assert_int_equal(api_rig_count(r, "journal WHERE type LIKE 'session.%'"), 2);
        api_rig_expect(r, "GET", "/metrics", NULL, 200, "dragoman_session_events_total 2\n");
        api_rig_expect(r, "GET", "/metrics", NULL, 200, "dragoman_session_duplicates_total 2\n");
        api_rig_expect(r, "GET", "/metrics", NULL, 200, "dragoman_session_views 0\n");
}

static void a_turn_adds_tokens_and_cost(void **state)
{
        struct api_rig *r = *state;

        api_rig_expect(r, "POST", EVENT,
                       "[{\"session_id\":7,\"event_type\":\"turn_end\",\"metadata\":{\"usage\":"
                       "{\"totalTokens\":100,\"cost\":{\"total\":0.25}}}},"
                       "{\"session_id\":\"7\",\"event_type\":\"turn_end\",\"metadata\":{\"usage\":"
                       "{\"input\":10,\"output\":5,\"cost\":0.5}}},"
                       "{\"session_id\":\"7\",\"event_type\":\"turn_end\",\"metadata\":"
                       "{\"final\":false,\"usage\":{\"totalTokens\":5,\"cost\":1}}},"
                       "{\"session_id\":\"7\",\"event_type\":\"turn_end\",\"metadata\":\"odd\"}]",
                       200, "\"accepted\":4");
        api_rig_expect(r, "GET", SESSIONS "/7", NULL, 200,
                       "\"turns\":3,\"tokens\":120,\"costUsd\":"
                       "1.75");
        api_rig_expect(r, "POST", EVENT, "{\"session_id\":\"7\",\"event_type\":\"session_end\"}",
                       200, NULL);
        api_rig_expect(r, "GET", SESSIONS "?state=ended", NULL, 200, "\"sessionId\":\"7\"");
        api_rig_expect(r, "POST", SESSIONS "/7/commands", "{\"content\":\"x\"}", 409, "ended");
}

static void what_is_no_event_is_refused_whole(void **state)
{
        static const struct {
                const char *body, *part;
        } rows[] = {
                { "", "'' is not valid JSON" },
                { "{", "JSON" },
                { "[]", "a list of 1 to 200" },
                { "7", "expected an object" },
                { "{}", "session_id: expected" },
                { "{\"session_id\":\"\",\"event_type\":\"x\"}", "session_id: expected" },
                { "{\"session_id\":\"a\\nb\",\"event_type\":\"x\"}", "session_id: expected" },
                { "{\"session_id\":\"s\",\"event_type\":\"Tool Call\"}", "event_type: expected" },
                { "{\"session_id\":\"s\",\"event_type\":\"command.queued\"}", "event_type" },
                { "{\"session_id\":\"s\",\"event_type\":\"x\",\"content\":7}",
                  "content: expected" },
                { "{\"session_id\":\"s\",\"event_type\":\"approval_request\"}",
                  "metadata.approval_id" },
                { "[{\"session_id\":\"s\",\"event_type\":\"x\"},{\"session_id\":\"s\"}]",
                  "[1].event_type: expected" },
        };
        struct api_rig *r = *state;
        struct buf body;

        for (size_t i = 0; i < COUNT(rows); i++)
                api_rig_expect(r, "POST", EVENT, rows[i].body, 400, i > 0 ? rows[i].part : NULL);
        buf_init(&body, 0);
        for (int i = 0; i < 201; i++)
                buf_addf(&body, "%s{\"session_id\":\"s\",\"event_type\":\"x\"}", i ? "," : "[");
        buf_addch(&body, ']');
        api_rig_expect(r, "POST", EVENT, body.data, 400, "1 to 200");
        buf_clear(&body);
        buf_addstr(&body, "{\"session_id\":\"s\",\"event_type\":\"x\",\"content\":\"");
        for (int i = 0; i < 70000; i++)
                buf_addch(&body, 'x');
        buf_addstr(&body, "\"}");
        api_rig_expect(r, "POST", EVENT, body.data, 400, "content: too long");
        buf_release(&body);
        assert_int_equal(api_rig_count(r, "sessions"), 0);
        assert_int_equal(api_rig_count(r, "journal WHERE type LIKE 'session.%'"), 0);
}

static void sessions_beyond_the_limit_are_refused(void **state)
{
        struct api_rig *r = *state;
        struct remote_conf conf = *remote_get_conf(r->remote);

        conf.active = 1;
        remote_set_conf(r->remote, &conf);
        api_rig_expect(r, "POST", EVENT, START, 200, NULL);
        api_rig_expect(r, "POST", EVENT, "{\"session_id\":\"s2\",\"event_type\":\"x\"}", 429,
                       "sessions.active");
}

/* ---- commands ---- */

static void a_lost_answer_to_a_receipt_is_given_again(void **state)
{
        struct api_rig *r = *state;
        char *id;

        api_rig_expect(r, "POST", EVENT, START, 200, NULL);
        id = steer(r, "s1", "{\"content\":\"go left\"}");
        for (int i = 0; i < 2; i++)
                acknowledge(r, id, "{\"status\":\"delivered\",\"receipt\":\"mine\"}", 200,
                            "\"state\":\"delivered\",\"duplicate\":false");
        acknowledge(r, id, "{\"status\":\"delivered\",\"receipt\":\"other\"}", 200,
                    "\"state\":\"delivered\",\"duplicate\":true");
        acknowledge(r, id, "{\"status\":\"delivered\"}", 200,
                    "\"state\":\"delivered\",\"duplicate\":true");
        free(id);
}

static void a_command_is_delivered_at_most_once(void **state)
{
        struct api_rig *r = *state;
        char *id;

        api_rig_expect(r, "POST", EVENT, START, 200, NULL);
        api_rig_expect(r, "GET", POLL "s1", NULL, 200, "[]");
        id = steer(r, "s1", "{\"content\":\"go left\"}");
        api_rig_expect(r, "GET", POLL "s1", NULL, 200,
                       "\"action\":\"steer\",\"content\":\"go left\"");
        api_rig_expect(r, "GET", "/api/commands?session_id=s1", NULL, 200, id); /* shown again */
        acknowledge(r, id, "{\"status\":\"delivered\"}", 200,
                    "\"state\":\"delivered\",\"duplicate\":false");
        acknowledge(r, id, "{\"status\":\"delivered\"}", 200,
                    "\"state\":\"delivered\",\"duplicate\":true");
        api_rig_expect(r, "GET", POLL "s1", NULL, 200, "[]");
        acknowledge(r, id, "{\"status\":\"seen\"}", 200, "\"state\":\"seen\",\"duplicate\":false");
        acknowledge(r, id, "{\"status\":\"failed\"}", 200, "\"state\":\"seen\",\"duplicate\":true");
        acknowledge(r, id, "{\"status\":\"queued\"}", 400, "status");
        acknowledge(r, "nothing", "{\"status\":\"seen\"}", 404, "nothing");
        assert_int_equal(api_rig_count(r, "journal WHERE type IN ('session.command.queued',"
                                          " 'session.command.delivered', 'session.command.seen')"
                                          " AND payload LIKE '%\"by\":\"the operator\"%'"),
                         3);
        free(id);
}

static void commands_come_oldest_first_with_what_they_need(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a;

        api_rig_expect(r, "POST", EVENT, START, 200, NULL);
        free(steer(r, "ses-1", "{\"content\":\"one\",\"action\":\"followUp\"}"));
        free(steer(r, "s1", "{\"action\":\"abort\"}"));
        api_rig_expect(r, "POST", EVENT,
                       "[{\"session_id\":\"0199aa\",\"event_type\":\"x\"},"
                       "{\"session_id\":\"0199ab\",\"event_type\":\"x\"}]",
                       200, NULL);
        api_rig_expect(r, "GET", SESSIONS "/0199", NULL, 409, "2 sessions begin with");
        api_rig_expect(r, "GET", SESSIONS "/0199b", NULL, 404, "0199b");
        free(steer(r, "0199ab", "{\"content\":\"x\"}"));
        api_rig_expect(r, "POST", SESSIONS "/s1/commands", "{}", 400, "content");
        api_rig_expect(r, "POST", SESSIONS "/s9/commands", "{\"content\":\"x\"}", 404, "s9");
        a = api_rig_ask(r, "GET", POLL "s1", NULL);
        assert_int_equal(json_array_size(a.json), 2);
        assert_string_equal(json_str(json_array_get(a.json, 0), "action", ""), "followUp");
        assert_string_equal(json_str(json_array_get(a.json, 1), "action", ""), "abort");
        assert_string_equal(json_str(json_array_get(a.json, 1), "by", ""), "the operator");
        api_answer_release(&a);
        api_rig_expect(r, "GET", SESSIONS "/s1/commands?limit=1", NULL, 200, "\"hasMore\":true");
        api_rig_expect(r, "GET", SESSIONS "/s1/commands?limit=1&cursor=cmd-2", NULL, 200,
                       "\"content\":\"one\"");
}

static void the_same_key_commands_once(void **state)
{
        struct api_rig *r = *state;
        static const struct {
                const char *body;
                int status;
        } rows[] = { { "{\"content\":\"x\"}", 201 },
                     { "{\"content\":\"x\"}", 201 },
                     { "{\"content\":\"y\"}", 409 } };

        api_rig_expect(r, "POST", EVENT, START, 200, NULL);
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct http_raw c;
                struct api_answer a;

                api_rig_send(r, &c, "POST", SESSIONS "/s1/commands", "Idempotency-Key: k\r\n",
                             rows[i].body);
                a = api_rig_receive(&c);
                assert_int_equal(a.status, rows[i].status);
                api_answer_release(&a);
        }
        assert_int_equal(api_rig_count(r, "session_commands"), 1);
}

static void the_same_key_decides_once(void **state)
{
        static const struct {
                const char *decision, *reason;
                int status;
        } rows[] = { { "allow", "fine", 201 },
                     { "allow", "fine", 201 },
                     { "deny", "fine", 409 },
                     { "allow", "go on", 409 } };
        struct api_rig *r = *state;

        ask_approval(r);
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *body = mem_printf("{\"action\":\"decision\",\"approvalId\":\"a1\","
                                        "\"decision\":\"%s\",\"reason\":\"%s\"}",
                                        rows[i].decision, rows[i].reason);
                struct http_raw c;
                struct api_answer a;

                api_rig_send(r, &c, "POST", SESSIONS "/s1/commands", "Idempotency-Key: k\r\n",
                             body);
                a = api_rig_receive(&c);
                assert_int_equal(a.status, rows[i].status);
                api_answer_release(&a);
                free(body);
        }
        assert_int_equal(api_rig_count(r, "session_commands WHERE decision = 'allow'"), 1);
}

static bool is_gone(void *arg)
{
        return api_rig_count((struct api_rig *)arg, "session_commands WHERE state = 'expired'") ==
               1;
}

static void a_command_that_nobody_fetches_expires(void **state)
{
        struct api_rig *r = *state;
        char *id;

        api_rig_expect(r, "POST", EVENT, START, 200, NULL);
        id = steer(r, "s1", "{\"content\":\"go left\"}");
        api_rig_update(r, "session_commands SET expires_ms = ?1 WHERE id = ?2", 1, 1);
        api_rig_expect(r, "GET", POLL "s1", NULL, 200, "[]"); /* even before the timer */
        acknowledge(r, id, "{\"status\":\"delivered\"}", 409, "expired");
        remote_start(r->remote);
        assert_true(http_raw_until(r->loop, is_gone, r));
        acknowledge(r, id, "{\"status\":\"delivered\"}", 409, "expired");
        assert_int_equal(api_rig_count(r, "journal WHERE type = 'session.command.expired'"), 1);
        free(id);
}

static bool is_archived(void *arg)
{
        return api_rig_count((struct api_rig *)arg, "sessions WHERE state = 'archived'") == 1;
}

static void a_quiet_session_is_archived_until_it_speaks(void **state)
{
        struct api_rig *r = *state;

        api_rig_expect(r, "POST", EVENT, START, 200, NULL);
        api_rig_update(r, "sessions SET last_event_ms = ?1 WHERE id = ?2", 1, 1);
        remote_start(r->remote);
        assert_true(http_raw_until(r->loop, is_archived, r));
        assert_int_equal(api_rig_count(r, "journal WHERE type = 'session.state.archived'"), 1);
        api_rig_expect(r, "POST", EVENT, "{\"session_id\":\"s1\",\"event_type\":\"message\"}", 200,
                       NULL);
        assert_int_equal(api_rig_count(r, "sessions WHERE state = 'active'"), 1);
}

static void a_full_queue_refuses(void **state)
{
        struct api_rig *r = *state;
        struct remote_conf conf = *remote_get_conf(r->remote);

        conf.queued = 1;
        remote_set_conf(r->remote, &conf);
        api_rig_expect(r, "POST", EVENT, START, 200, NULL);
        free(steer(r, "s1", "{\"content\":\"one\"}"));
        api_rig_expect(r, "POST", SESSIONS "/s1/commands", "{\"content\":\"two\"}", 429,
                       "sessions.queued");
}

static void the_stream_has_what_waits_and_what_follows(void **state)
{
        struct api_rig *r = *state;
        char *first, *second, *shown;
        struct http_raw c;

        api_rig_expect(r, "POST", EVENT, START, 200, NULL);
        api_rig_expect(r, "POST", EVENT, "{\"session_id\":\"s2\",\"event_type\":\"x\"}", 200, NULL);
        first = steer(r, "s1", "{\"content\":\"first\"}");
        api_rig_send(r, &c, "GET", "/api/commands/stream?session_id=s1", "", NULL);
        assert_true(http_raw_wait_for(&c, "\"content\":\"first\""));
        free(steer(r, "s2", "{\"content\":\"elsewhere\"}"));
        second = steer(r, "s1", "{\"content\":\"second\"}");
        assert_true(http_raw_wait_for(&c, "\"content\":\"second\""));
        shown = mem_printf("id: %s\nevent: command\ndata: {\"command_id\":\"%s\",", second, second);
        assert_non_null(strstr(c.in.data, shown));
        assert_null(strstr(c.in.data, "elsewhere"));
        http_raw_close(&c);
        /* again, because it was not acknowledged */
        acknowledge(r, first, "{\"status\":\"delivered\"}", 200, NULL);
        api_rig_send(r, &c, "GET", "/api/commands/stream?session_id=s1", "", NULL);
        assert_true(http_raw_wait_for(&c, "\"content\":\"second\""));
        assert_null(strstr(c.in.data, "first"));
        http_raw_close(&c);
        api_rig_expect(r, "GET", "/api/commands/stream?session_id=s9", NULL, 404, "s9");
        free(first);
        free(second);
        free(shown);
}

/* ---- approvals ---- */

static void resolve_approval(struct api_rig *r)
{
        api_rig_expect(r, "POST", EVENT,
                       "{\"session_id\":\"s1\",\"event_type\":\"approval_resolved\","
                       "\"metadata\":{\"approval_id\":\"a1\",\"decision\":\"allow\","
                       "\"by\":\"desk\"}}",
                       200, "\"accepted\":1");
}

#define DENY "{\"action\":\"decision\",\"approvalId\":\"a1\",\"decision\":\"deny\"}"

static void a_decision_after_the_desks_is_refused(void **state)
{
        struct api_rig *r = *state;

        ask_approval(r);
        resolve_approval(r);
        assert_int_equal(api_rig_count(r, "session_approvals WHERE state = 'allow'"
                                          " AND decided_by = 'desk'"),
                         1);
        api_rig_expect(r, "POST", SESSIONS "/s1/commands", DENY, 409, "allow, by desk");
        api_rig_expect(r, "GET", POLL "s1", NULL, 200, "[]");
}

static void a_decision_that_the_desk_overtakes_is_superseded(void **state)
{
        struct api_rig *r = *state;
        char *id;

        ask_approval(r);
        api_rig_expect(r, "POST", SESSIONS "/s1/commands", "{\"action\":\"decision\"}", 400,
                       "approvalId");
        id = steer(r, "s1", DENY);
        api_rig_expect(r, "GET", POLL "s1", NULL, 200,
                       "\"approval_id\":\"a1\",\"decision\":\"deny\"");
        api_rig_expect(r, "POST", SESSIONS "/s1/commands", DENY, 409, "decided already");
        resolve_approval(r);
        api_rig_expect(r, "GET", POLL "s1", NULL, 200, "[]");
        acknowledge(r, id, "{\"status\":\"delivered\"}", 200,
                    "\"state\":\"superseded\",\"duplicate\":true");
        assert_int_equal(api_rig_count(r, "journal WHERE type = 'session.command.superseded'"), 1);
        /* what the program did is what people are shown */
        assert_int_equal(api_rig_count(r, "session_approvals WHERE state = 'allow'"
                                          " AND decided_by = 'desk'"),
                         1);
        free(id);
}

/* ---- keys and chats ---- */

static void another_key_sees_nothing_of_a_session(void **state)
{
        struct api_rig *r = *state;
        char *own = api_rig_key_headers(
                r, "{\"name\":\"laptop\",\"scopes\":[\"sessions:write\"],\"adapters\":[\"api\"]}");
        char *other = api_rig_key_headers(r, "{\"name\":\"desk\",\"scopes\":[\"sessions:write\"]}");
        char *reader = api_rig_key_headers(r, "{\"name\":\"reader\",\"scopes\":[\"read\"]}");
        char *id, *path;

        expect_as(r, own, "POST", EVENT, START, 200, NULL);
        id = steer(r, "s1", "{\"content\":\"x\"}"); /* the operator may steer all */
        path = mem_printf("/api/commands/%s/ack", id);
        expect_as(r, other, "POST", EVENT, START, 404, "s1");
        expect_as(r, other, "GET", POLL "s1", NULL, 404, "s1");
        expect_as(r, other, "GET", "/api/commands/stream?session_id=s1", NULL, 404, "s1");
        expect_as(r, other, "POST", path, "{\"status\":\"delivered\"}", 404, NULL);
        expect_as(r, other, "POST", "/api/sessions/s1/link",
                  "{\"adapter\":\"api\",\"channel_id\":\"c\"}", 404, "s1");
        expect_as(r, other, "GET", SESSIONS "/s1", NULL, 404, "s1");
        expect_as(r, other, "GET", SESSIONS "/ses-1/commands", NULL, 404, "ses-1");
        expect_as(r, other, "POST", SESSIONS "/s1/commands", "{\"content\":\"x\"}", 404, "s1");
        expect_as(r, other, "GET", SESSIONS, NULL, 200, "\"items\":[]");
        expect_as(r, reader, "GET", SESSIONS, NULL, 200, "\"items\":[]");
        expect_as(r, reader, "GET", POLL "s1", NULL, 403, "sessions:write");
        expect_as(r, reader, "POST", EVENT, START, 403, "sessions:write");
        expect_as(r, own, "GET", POLL "s1", NULL, 200, id);
        expect_as(r, own, "POST", path, "{\"status\":\"delivered\"}", 200, "\"duplicate\":false");
        expect_as(r, own, "GET", SESSIONS, NULL, 200, "\"sessionId\":\"s1\"");
        expect_as(r, own, "POST", "/api/sessions/s1/link",
                  "{\"adapter\":\"terminal\",\"channel_id\":\"c\"}", 403, NULL);
        free(own);
        free(other);
        free(reader);
        free(path);
        free(id);
}

static void a_session_is_linked_to_a_chat(void **state)
{
        struct chat_key chat = { "api", "room", "7" }, elsewhere = { "api", "room", NULL };
        struct api_rig *r = *state;
        char *own = api_rig_key_headers(
                r, "{\"name\":\"a\",\"scopes\":[\"sessions:write\"],\"adapters\":[\"terminal\"]}");

        expect_as(r, own, "POST", "/api/sessions/s1/link", "{\"thread_id\":7}", 422,
                  "name one of terminal, or");
        free(own);
        api_rig_expect(r, "POST", "/api/sessions/s1/link", "{\"thread_id\":7}", 422,
                       "sessions.adapter");
        api_rig_expect(r, "POST", "/api/sessions/s1/link", "{\"adapter\":\"api\",\"thread_id\":7}",
                       422, "channel_id");
        api_rig_expect(r, "POST", "/api/sessions/s1/link", "{\"adapter\":\"nowhere\"}", 400,
                       "thread_id");
        api_rig_expect(r, "POST", "/api/sessions/s1/link",
                       "{\"adapter\":\"nowhere\",\"thread_id\":[]}", 400, "thread_id");
        api_rig_expect(r, "POST", "/api/sessions/s1/link",
                       "{\"adapter\":\"api\",\"thread_id\":7,\"channel_id\":\"room\","
                       "\"user_id\":42}",
                       200, "\"channel\":\"room\",\"thread\":\"7\"");
        assert_int_equal(session_index_find(r->remote, &chat, NULL, NULL), 1);
        assert_int_equal(session_index_find(r->remote, &elsewhere, NULL, NULL), 0);
        assert_int_equal(api_rig_count(r, "journal WHERE type = 'session.chat.linked'"), 1);
        assert_int_equal(api_rig_count(r, "sessions WHERE identity = 'api:42'"), 1);
        /* an ended one leaves its chat, and has it again when it goes on */
        api_rig_expect(r, "POST", EVENT, "{\"session_id\":\"s1\",\"event_type\":\"session_end\"}",
                       200, NULL);
        assert_int_equal(session_index_find(r->remote, &chat, NULL, NULL), 0);
        api_rig_expect(r, "POST", EVENT, START, 200, NULL);
        assert_int_equal(session_index_find(r->remote, &chat, NULL, NULL), 1);
}

/* It says that the person of the session writes. */
static void say_as(struct api_rig *r, const char *headers, const char *adapter, const char *text)
{
        char *body = mem_printf("{\"instanceId\":\"%s\",\"chatId\":\"room\",\"text\":\"%s\","
                                "\"sender\":{\"id\":\"ada\"}}",
                                adapter, text);

        expect_as(r, headers, "POST", "/api/v2/messages/inbound?wait=5000", body, 202, "\"reply\"");
        free(body);
}

static void only_the_operator_steers_where_clients_are_trusted(void **state)
{
        static const char *const adapters[] = { "api", "terminal" };
        static const char *const says[] = { "go left", "/approve sap-1", "/abort ses-1",
                                            "/steer ses-1 go left" };
        struct api_rig *r = *state;
        char *key = api_rig_key_headers(r, "{\"name\":\"a\",\"scopes\":[\"messages:write\"]}");
        char *own = mem_printf("Host: %s\r\nx-api-key: %s\r\n", api_address(r->api), r->key);

        api_rig_dispatch(r, NULL, NULL);
        ask_approval(r);
        for (size_t i = 0; i < COUNT(adapters); i++) {
                char *link = mem_printf(
                        "{\"adapter\":\"%s\",\"channel_id\":\"room\",\"user_id\":\"ada\"}",
                        adapters[i]);

                api_rig_expect(r, "POST", "/api/sessions/s1/link", link, 200, NULL);
                free(link);
                for (size_t k = 0; k < COUNT(says); k++)
                        say_as(r, key, adapters[i], says[k]);
        }
        assert_int_equal(api_rig_count(r, "session_commands"), 0);
        assert_int_equal(api_rig_count(r, "session_approvals WHERE state = 'open'"), 1);
        say_as(r, own, "api", "/approve sap-1");
        assert_int_equal(api_rig_count(r, "session_commands"), 0);
        say_as(r, own, "terminal", "/approve sap-1");
        assert_int_equal(api_rig_count(r, "session_commands WHERE decision = 'allow'"), 1);
        say_as(r, own, "terminal", "go left");
        assert_int_equal(api_rig_count(r, "session_commands WHERE given_by = 'cli:ada'"), 2);
        free(own);
        free(key);
}

static int write_view(struct store_tx *tx, void *arg, struct error *err)
{
        const struct session_view_row row = {
                .session = 1, .adapter = "api", .channel = "room", .own_thread = "t1"
        };

        (void)arg;
        return session_view_row_put(tx, &row, err);
}

/* As a program does that is resumed: its thread is there already. */
static void a_session_that_is_linked_again_keeps_its_thread(void **state)
{
        struct chat_key thread = { "api", "room", "t1" }, channel = { "api", "room", NULL },
                        other = { "api", "hall", NULL };
        struct api_rig *r = *state;

        api_rig_expect(r, "POST", EVENT, START, 200, NULL);
        assert_int_equal(store_write_now(r->store, write_view, NULL, NULL), 0);
        for (int i = 0; i < 2; i++) {
                api_rig_expect(r, "POST", "/api/sessions/s1/link",
                               "{\"adapter\":\"api\",\"channel_id\":\"room\"}", 200, NULL);
                assert_int_equal(session_index_find(r->remote, &thread, NULL, NULL), 1);
                assert_int_equal(session_index_find(r->remote, &channel, NULL, NULL), 0);
        }
        api_rig_expect(r, "POST", "/api/sessions/s1/link",
                       "{\"adapter\":\"api\",\"channel_id\":\"hall\"}", 200, NULL);
        assert_int_equal(session_index_find(r->remote, &thread, NULL, NULL), 0);
        assert_int_equal(session_index_find(r->remote, &other, NULL, NULL), 1);
}

static void the_thread_of_a_session_is_for_its_key_alone(void **state)
{
        struct api_rig *r = *state;
        char *own = api_rig_key_headers(r, "{\"name\":\"a\",\"scopes\":[\"sessions:write\"]}");
        char *other = api_rig_key_headers(r, "{\"name\":\"b\",\"scopes\":[\"sessions:write\"]}");

#define LINK(place) "{\"adapter\":\"api\"," place "}"
        expect_as(r, own, "POST", EVENT, START, 200, NULL);
        assert_int_equal(store_write_now(r->store, write_view, NULL, NULL), 0);
        expect_as(r, other, "POST", "/api/sessions/s2/link",
                  LINK("\"channel_id\":\"room\",\"thread_id\":\"t1\""), 409, "another key");
        expect_as(r, other, "POST", "/api/sessions/s2/link", LINK("\"channel_id\":\"t1\""), 409,
                  "another key");
        expect_as(r, other, "POST", "/api/sessions/s2/link", LINK("\"channel_id\":\"room\""), 200,
                  NULL);
        /* numbers of threads may be those of their channel */
        expect_as(r, other, "POST", "/api/sessions/s2/link",
                  LINK("\"channel_id\":\"hall\",\"thread_id\":\"t1\""), 200, NULL);
        expect_as(r, own, "POST", "/api/sessions/s3/link",
                  LINK("\"channel_id\":\"room\",\"thread_id\":\"t1\""), 200, NULL);
        expect_as(r, own, "POST", EVENT, "{\"session_id\":\"s1\",\"event_type\":\"session_end\"}",
                  200, NULL);
        expect_as(r, other, "POST", "/api/sessions/s2/link",
                  LINK("\"channel_id\":\"room\",\"thread_id\":\"t1\""), 200, NULL);
#undef LINK
        free(own);
        free(other);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                API_RIG_CASE(an_event_is_stored_before_its_answer),
                API_RIG_CASE(a_repeated_event_is_stored_once),
                API_RIG_CASE(a_turn_adds_tokens_and_cost),
                API_RIG_CASE(what_is_no_event_is_refused_whole),
                API_RIG_CASE(sessions_beyond_the_limit_are_refused),
                API_RIG_CASE(a_command_is_delivered_at_most_once),
                API_RIG_CASE(a_lost_answer_to_a_receipt_is_given_again),
                API_RIG_CASE(commands_come_oldest_first_with_what_they_need),
                API_RIG_CASE(the_same_key_commands_once),
                API_RIG_CASE(the_same_key_decides_once),
                API_RIG_CASE(a_command_that_nobody_fetches_expires),
                API_RIG_CASE(a_quiet_session_is_archived_until_it_speaks),
                API_RIG_CASE(a_full_queue_refuses),
                API_RIG_CASE(the_stream_has_what_waits_and_what_follows),
                API_RIG_CASE(a_decision_after_the_desks_is_refused),
                API_RIG_CASE(a_decision_that_the_desk_overtakes_is_superseded),
                API_RIG_CASE(another_key_sees_nothing_of_a_session),
                API_RIG_CASE(only_the_operator_steers_where_clients_are_trusted),
                API_RIG_CASE(a_session_is_linked_to_a_chat),
                API_RIG_CASE(a_session_that_is_linked_again_keeps_its_thread),
                API_RIG_CASE(the_thread_of_a_session_is_for_its_key_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
