/* What the API offers, in one table. Adding a route is a row here and a function in the file of its resource. */
#include "api/routes.h"

#include "api/api_private.h"

#define SENT_ANSWER                                                                                      \
        "The delivery is on disk: {\"data\": {\"deliveryId\", \"status\": \"queued\" or \"duplicate\", " \
        "\"count\", \"traceId\"}}."
#define SENT_EXAMPLE                                                                         \
        "{\"data\":{\"deliveryId\":\"dlv-7\",\"status\":\"queued\",\"count\":1,\"traceId\":" \
        "\"0198c0ffee00aabbccddeeff00112233\"}}"
#define PAGE "A page: {\"items\": [...], \"meta\": {\"hasMore\", \"cursor\"}}"

/* clang-format off */
const struct api_route api_routes[] = {
        { "GET", "/healthz", SCOPE_NONE, health_alive, REACH_SHARED,
          .summary = "Is the process alive?", .status = 200, .answer = "It is.",
          .example_answer = "{\"data\":{\"status\":\"ok\"}}" },
        { "GET", "/readyz", SCOPE_NONE, health_ready, REACH_SHARED,
          .summary = "Is every enabled adapter connected, or has it said why not, and does the store work?",
          .status = 200, .answer = "Ready; 503 with the same body when not. Reasons are shown to this machine and to whoever has the key.",
          .example_answer = "{\"data\":{\"ready\":true,\"store\":{\"state\":\"ok\",\"why\":null},\"adapters\":{}}}" },
        { "GET", "/metrics", SCOPE_LOCAL, metrics_show, REACH_ALL,
          .summary = "Counters and gauges for Prometheus; without a key only while nobody but this machine can connect.",
          .status = 200, .answer = "The Prometheus text format.", .content_type = "text/plain" },
        { "GET", "/api/openapi.json", SCOPE_NONE, openapi_show, REACH_SHARED,
          .summary = "This description.", .status = 200, .answer = "An OpenAPI 3.1 document." },
        { "GET", "/api/v2/status", SCOPE_READ, health_status, REACH_ALL,
          .summary = "What is going on: version, uptime, store, journal, turns, deliveries.", .status = 200,
          .answer = "{\"data\": {...}}" },

        { "POST", "/api/v2/messages/inbound", SCOPE_WRITE, messages_inbound, REACH_BODY,
          .summary = "Hand over a message from other software, as a platform would.", .query = inbound_query,
          .body = inbound_fields, .status = 202,
          .answer = "The event is on disk: {\"data\": {\"eventId\", \"traceId\", \"status\": \"stored\" or \"duplicate\"}}; with "
                    "wait also \"reply\": {\"status\", \"text\", \"turnId\", \"reason\"}, null when the time was up.",
          .example = "{\"instanceId\":\"api\",\"chatId\":\"support-17\",\"text\":\"What is the time?\",\"externalId\":\"msg-1\","
                     "\"sender\":{\"id\":\"ann\",\"displayName\":\"Ann\"}}",
          .example_answer = "{\"data\":{\"eventId\":\"evt-42\",\"traceId\":\"0198c0ffee00aabbccddeeff00112233\",\"status\":\"stored\"}}" },
        { "POST", "/api/v2/messages/send", SCOPE_WRITE, messages_send, REACH_BODY,
          .summary = "Send a message through an adapter. The header Idempotency-Key makes repeating the request harmless.",
          .body = send_fields, .status = 202,
          .answer = SENT_ANSWER,
          .example = "{\"instanceId\":\"api\",\"to\":\"support-17\",\"text\":\"It is **noon**.\"}",
          .example_answer = SENT_EXAMPLE },
        { "POST", "/api/v2/messages/send/media", SCOPE_WRITE, messages_send_media, REACH_BODY,
          .summary = "Send a file of the workspace, with a caption.", .body = send_media_fields, .status = 202,
          .answer = SENT_ANSWER,
          .example = "{\"instanceId\":\"tg\",\"to\":\"42\",\"path\":\"charts/today.png\",\"as\":\"photo\",\"caption\":\"Today\"}",
          .example_answer = SENT_EXAMPLE },
        { "POST", "/api/v2/messages/send/reaction", SCOPE_WRITE, messages_send_reaction, REACH_BODY,
          .summary = "React to a message.", .body = send_reaction_fields, .status = 202, .answer = SENT_ANSWER,
          .example = "{\"instanceId\":\"tg\",\"to\":\"42\",\"messageId\":\"17\",\"emoji\":\"\\ud83d\\udc40\"}",
          .example_answer = SENT_EXAMPLE },
        { "POST", "/api/v2/messages/edit", SCOPE_WRITE, messages_edit, REACH_BODY,
          .summary = "Change a message of the bot. Edits of one message that still wait become the latest.",
          .body = edit_fields, .status = 202, .answer = SENT_ANSWER,
          .example = "{\"instanceId\":\"tg\",\"to\":\"42\",\"messageId\":\"17\",\"text\":\"It is *one*.\"}",
          .example_answer = SENT_EXAMPLE },
        { "POST", "/api/v2/messages/delete", SCOPE_WRITE, messages_delete, REACH_BODY,
          .summary = "Delete a message.", .body = delete_fields, .status = 202, .answer = SENT_ANSWER,
          .example = "{\"instanceId\":\"tg\",\"to\":\"42\",\"messageId\":\"17\"}", .example_answer = SENT_EXAMPLE },

        { "GET", "/api/v2/events", SCOPE_READ, events_list, REACH_LIST,
          .summary = "The journal in pages: newest first, or oldest first with after. meta.cursor is the next before or after.",
          .query = events_query, .status = 200, .answer = PAGE " of events." },
        { "GET", "/api/v2/events/stream", SCOPE_READ, events_stream, REACH_LIST,
          .summary = "The journal as server-sent events: what came after Last-Event-ID, then live, without gap or repetition. "
                     "Streamed text and progress (turn.delta, turn.progress) have no id. A reader far behind gets a part and comes back.",
          .query = stream_query, .status = 200, .answer = "An event stream.", .content_type = "text/event-stream" },
        { "GET", "/api/v2/events/:id", SCOPE_READ, events_show, REACH_ROW, event_owner,
          .summary = "One event.", .status = 200, .answer = "{\"data\": event}" },

        { "GET", "/api/v2/deliveries", SCOPE_READ, deliveries_list, REACH_LIST,
          .summary = "What was sent and what is on its way, newest first.", .query = deliveries_query, .status = 200,
          .answer = PAGE " of deliveries." },
        { "GET", "/api/v2/deliveries/:id", SCOPE_READ, deliveries_show, REACH_ROW, delivery_owner,
          .summary = "One delivery with its attempts.", .status = 200, .answer = "{\"data\": delivery}" },
        { "POST", "/api/v2/deliveries/:id/retry", SCOPE_WRITE, deliveries_retry, REACH_ROW, delivery_owner,
          .summary = "Put a failed delivery back.", .body = retry_fields, .status = 202,
          .answer = "{\"data\": {\"id\", \"status\": \"queued\"}}", .example = "{\"force\":false}" },
        { "GET", "/api/v2/dead-letters", SCOPE_READ, dead_letters_list, REACH_LIST,
          .summary = "Deliveries that failed or whose fate is unknown, then turns that failed; newest first.",
          .query = dead_letters_query, .status = 200, .answer = PAGE " of {\"id\", \"kind\", \"delivery\" or \"turn\"}." },
        { "POST", "/api/v2/dead-letters/:id/retry", SCOPE_WRITE, dead_letters_retry, REACH_ROW, dead_letter_owner,
          .summary = "Put a dead delivery (dlv-N) or turn (trn-N) back.", .body = retry_fields, .status = 202,
          .answer = "{\"data\": {\"id\", \"status\": \"queued\"}}", .example = "{\"force\":true}" },

        { "GET", "/api/v2/turns", SCOPE_READ, turns_list, REACH_LIST,
          .summary = "What agents did and do, newest first.", .query = turns_query, .status = 200,
          .answer = PAGE " of turns." },
        { "GET", "/api/v2/turns/:id", SCOPE_READ, turns_show, REACH_ROW, turn_owner,
          .summary = "One turn.", .status = 200, .answer = "{\"data\": turn}" },
        { "POST", "/api/v2/turns/:id/cancel", SCOPE_WRITE, turns_cancel, REACH_ROW, turn_owner,
          .summary = "Stop a waiting or running turn.", .body = cancel_fields, .status = 202,
          .answer = "{\"data\": {\"id\", \"status\": \"cancelled\"}}", .example = "{\"reason\":\"asked by mistake\"}" },
        { "POST", "/api/v2/turns/:id/reply", SCOPE_NONE, turns_reply, REACH_SHARED, .admits = turns_reply_admit,
          .summary = "Answer a turn, as its agent: the replyUrl of a webhook's request. The turn's token is the key. The body is what a webhook may "
                     "answer: {\"reply\"}, {\"parts\": [...]} or {\"text\"}, with \"metadata\", or plain text. The first answer ends a turn that runs, "
                     "others are messages of their own. Idempotency-Key makes repeating it harmless.",
          .query = turn_reply_query, .max_body = TURN_REPLY_MAX_BODY, .status = 202,
          .answer = "What became of it, once that is stored: {\"data\": {\"turnId\", \"status\": \"answered\", \"delivered\", \"discarded\" or "
                    "\"duplicate\", \"deliveryId\", \"reason\"}}; 401 not the token, 409 no further answer is allowed, 410 the token has expired." },
        { "GET", "/api/v2/trigger-logs", SCOPE_READ, trigger_logs_list, REACH_LIST,
          .summary = "What was decided about each inbound event and why, newest first.", .query = trigger_logs_query,
          .status = 200, .answer = PAGE " of decisions." },

        { "POST", "/api/v2/channels/:platform/:adapter/webhook", SCOPE_NONE, channels_webhook, REACH_SHARED,
          .admits = channels_admit, .max_body = CHANNELS_MAX_BODY,
          .summary = "Where a platform posts its events. The platform's own secret is the key: for Telegram the header "
                     "X-Telegram-Bot-Api-Secret-Token.",
          .status = 200, .answer = "The event is on disk; 503 when it could not be stored and should be sent again." },
        { "POST", "/api/v2/route-test", SCOPE_READ, route_test, REACH_HANDLER,
          .summary = "What the rules in force would do with an event, and why each rule does or does not match. Nothing happens.",
          .body = route_test_fields, .status = 200,
          .answer = "{\"data\": {\"decision\", \"access\", \"rateLimit\", \"rules\": [{\"name\", \"matched\", \"why\"}]}}",
          .example = "{\"event\":{\"instanceId\":\"tg\",\"channel\":\"7\",\"payload\":{\"chatType\":\"dm\",\"sender\":{\"id\":\"7\"},"
                     "\"text\":\"hi\"}}}" },

        { "GET", "/api/v2/rules", SCOPE_READ, rules_list, REACH_ALL,
          .summary = "The rules in the order in which they are tried: those of the file and stored ones.", .status = 200,
          .answer = PAGE " of rules: {\"name\", \"source\": \"file\" or \"stored\", \"position\", \"enabled\", \"inForce\", "
                    "\"overridden\", \"why\", \"rule\"}." },
        { "POST", "/api/v2/rules", SCOPE_ADMIN, rules_create, REACH_ALL,
          .summary = "Store a new rule. It is in force when this is answered.", .body = rule_fields, .status = 201,
          .answer = "{\"data\": rule}; 409 when there is a stored one of this name.",
          .example = "{\"rule\":{\"name\":\"night\",\"when\":{\"adapter\":\"tg\",\"hours\":\"22:00-06:00\"},\"mode\":\"off\"},"
                     "\"position\":-1}" },
        { "GET", "/api/v2/rules/:name", SCOPE_READ, rules_show, REACH_ALL,
          .summary = "The rule of this name: the file's if it has one, else the stored one.", .status = 200,
          .answer = "{\"data\": rule}" },
        { "PUT", "/api/v2/rules/:name", SCOPE_ADMIN, rules_replace, REACH_ALL,
          .summary = "Store a rule of this name, or replace the stored one.", .body = rule_put_fields, .status = 200,
          .answer = "{\"data\": rule}", .example = "{\"rule\":{\"when\":{\"dm\":true},\"agent\":\"echo\"}}" },
        { "PATCH", "/api/v2/rules/:name", SCOPE_ADMIN, rules_change, REACH_ALL,
          .summary = "Move a stored rule, switch it on or off, or replace what it says; the rest stays.",
          .body = rule_patch_fields, .status = 200, .answer = "{\"data\": rule}", .example = "{\"enabled\":false}" },
        { "DELETE", "/api/v2/rules/:name", SCOPE_ADMIN, rules_delete, REACH_ALL,
          .summary = "Forget a stored rule.", .status = 200, .answer = "{\"data\": {\"name\", \"status\": \"deleted\"}}" },
        { "GET", "/api/v2/chats", SCOPE_READ, chats_list, REACH_LIST,
          .summary = "The chats the journal has messages of, the latest first, or by name. meta.cursor is the next cursor.",
          .query = chats_query, .status = 200,
          .answer = PAGE " of {\"instanceId\", \"channel\", \"chatType\", \"lastActivityAt\", \"lastMessage\"}." },
        { "GET", "/api/v2/chats/:adapter/:channel/messages", SCOPE_READ, chats_messages, REACH_PATH,
          .summary = "What was said in a chat, in both directions, newest first, or oldest first with after.",
          .query = messages_query, .status = 200, .answer = PAGE " of {\"direction\": \"in\" or \"out\", \"event\"}." },
        { "GET", "/api/v2/handover", SCOPE_READ, handover_show, REACH_LIST,
          .summary = "The chats in which a person has taken over from the agent, oldest first.", .status = 200,
          .answer = PAGE " of {\"instanceId\", \"channel\", \"threadId\", \"since\", \"until\", \"by\", \"reason\"}." },
        { "POST", "/api/v2/chats/:adapter/:channel/pause", SCOPE_WRITE, chats_pause, REACH_PATH,
          .summary = "Take over a chat: what people write is stored, but no agent is asked until it is resumed.",
          .body = pause_fields, .status = 200, .answer = "{\"data\": pause}",
          .example = "{\"reason\":\"a refund\",\"by\":\"Ann\"}" },
        { "POST", "/api/v2/chats/:adapter/:channel/resume", SCOPE_WRITE, chats_resume, REACH_PATH,
          .summary = "Give a chat back to the agent, which knows what was said meanwhile.", .body = resume_fields, .status = 200,
          .answer = "{\"data\": {\"instanceId\", \"channel\", \"threadId\", \"status\": \"resumed\"}}", .example = "{}" },

        { "GET", "/api/v2/instances", SCOPE_READ, instances_list, REACH_LIST,
          .summary = "The adapters. state is the worst of what the adapter says and what the road sees.", .status = 200,
          .answer = PAGE " of adapters." },
        { "GET", "/api/v2/instances/:adapter", SCOPE_READ, instances_show, REACH_PATH,
          .summary = "One adapter.", .status = 200, .answer = "{\"data\": adapter}" },
        { "GET", "/api/v2/agents", SCOPE_READ, agents_list, REACH_SHARED,
          .summary = "The agents and what is known of their health.", .status = 200, .answer = PAGE " of agents." },
        { "POST", "/api/v2/agents/:name/health", SCOPE_WRITE, agents_health, REACH_ALL,
          .summary = "Ask an agent how it is.", .status = 200, .answer = "{\"data\": {\"name\", \"healthy\", \"latencyMs\", \"why\"}}" },
        { "GET", "/api/v2/why/:id", SCOPE_READ, why_show, REACH_ROW, story_owner,
          .summary = "The story of a message: event, decision, turn, deliveries, and one sentence. The id is an event, turn, delivery, "
                     "trace, or the platform's own key.",
          .status = 200, .answer = "{\"data\": {\"summary\", \"event\", \"decision\", \"turn\", \"deliveries\"}}" },
        { "GET", "/api/v2/keys", SCOPE_ADMIN, keys_list, REACH_ALL,
          .summary = "The keys besides the operator's, oldest first. Their texts are known to nobody.", .status = 200,
          .answer = PAGE " of keys; all in one." },
        { "POST", "/api/v2/keys", SCOPE_ADMIN, keys_create, REACH_ALL,
          .summary = "Make a key. Its text is in this answer and never shown again.", .body = key_fields, .status = 201,
          .answer = "{\"data\": key and \"key\", its text}",
          .example = "{\"name\":\"shop\",\"scopes\":[\"messages:write\",\"events:read\"],\"adapters\":[\"api\"],"
                     "\"expiresAt\":\"2030-01-31T00:00:00Z\",\"rateLimit\":600}",
          .example_answer = "{\"data\":{\"id\":\"key-1\",\"name\":\"shop\",\"prefix\":\"dgk_a1B2c3D4\",\"scopes\":[\"messages:write\",\"events:read\"],"
                            "\"adapters\":[\"api\"],\"rateLimit\":600,\"state\":\"valid\",\"createdAt\":\"2026-11-15T10:00:00.000Z\","
                            "\"expiresAt\":\"2030-01-31T00:00:00.000Z\",\"lastUsedAt\":null,\"revokedAt\":null,\"key\":\"dgk_a1B2c3D4...\"}}" },
        { "DELETE", "/api/v2/keys/:id", SCOPE_ADMIN, keys_revoke, REACH_ALL,
          .summary = "Revoke a key (key-N): from now on it opens nothing.", .status = 200, .answer = "{\"data\": key}" },
        { "POST", "/api/v2/backup", SCOPE_ADMIN, backup_make, REACH_ALL,
          .summary = "Copy the database while running, into a new file.", .body = backup_fields, .status = 201,
          .answer = "{\"data\": {\"path\", \"bytes\", \"durationMs\"}}", .example = "{\"path\":\"state/backups/before-update.db\"}" },
};
/* clang-format on */

const size_t api_route_count = sizeof(api_routes) / sizeof(api_routes[0]);
