/*
 * Finds out whether a send without an answer arrived; see docs/RELIABILITY.md for the reasoning.
 *
 * Telegram cannot be asked what a chat contains, but the answer to an edit that changes nothing
 * shows who sent a message. Ours, if it arrived, has an id above `before`, the highest that was
 * known before the send, and below `after`, one that was certainly given after it:
 *
 *     LOADING    the stored messages are read
 *     SETTLING   Telegram may still be working on the send
 *     ASKING     unknown ids above `before` are asked for, one by one
 *     WAITING    for `after`: the id of a message that was sent or written later; or for
 *                updates that explain the ids still unknown
 *
 * Found: an unknown id is a message of ours; only one send of a chat is under way, so it is this
 * one. Not arrived: every id in between belongs to another message. Whatever is not as expected
 * ends as unsure: a person may miss an answer, but never gets two.
 *
 * A topic is found by the update about it, see tg_topic.c.
 *
 * An edit with the wrong keyboard would replace the keyboard of the message. So the ids asked for
 * are of the message that is looked for, of people, or of a message sent without buttons, to which
 * no edit adds any (make_edit of tg_send.c). If another message of ours may be there, none is asked
 * for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/telegram/telegram.h"

#define PROBES_MAX   64
#define FAILURES_MAX 20
#define LOOK_AHEAD   3 /* ids asked for while nothing, or only an update, is known to come after */
#define PROBE_MS     15000
#define RETRY_MS     500
#define RETRY_MAX_MS 30000
#define MISSING_MS   30000 /* for an id to become known, once a later one is */
#define CROWD        40    /* with more ids to ask for, wait for updates that explain them */
#define CROWD_MS     20000
#define LOOK_MS      200
#define HELD_MS      1000 /* later, a poll proves as much without being held */
#define MOVED        "the group became a supergroup, where ids start again"

enum probe {
        PROBE_OWN,    /* a message of the bot's own */
        PROBE_OTHERS, /* of another sender */
        PROBE_NONE,   /* not in this chat, or deleted */
        PROBE_AGAIN,  /* no answer this time */
        PROBE_ODD,    /* an answer we do not understand */
};

struct tg_doubt {
        struct adapter *adapter;
        int64_t delivery, fence;
        char *channel, *chat;                     /* as the delivery names it; its id */
        json_t *markup;                           /* of the message; NULL: none */
        char *topic;                              /* the name of one that is looked for, or NULL */
        int64_t before, after;                    /* after 0: not known */
        int64_t look_past;                        /* ids to ask for above `after` */
        int64_t settled_ms, until_ms, patient_ms; /* patient: to wait for updates until then */
        bool needs_chat;               /* may be a channel, where others' posts can be edited */
        bool ambiguous;                /* another message of ours may be there: ask for none */
        bool quiet;                    /* no update was waiting, after it had settled */
        int64_t quiet_highest;         /* the highest id known then */
        int64_t first;                 /* of `known` */
        uint8_t known[TG_IDS_MAX / 8]; /* ids that others have */
        int64_t control;               /* a known message of ours in this chat; 0: none */
        bool controlled;               /* Telegram said that it is ours */
        struct records_wait *wait;     /* of the store; NULL: read */
        struct tg_call *call;
        int64_t asked;    /* the id that is asked for */
        bool asked_final; /* a higher one was known then */
        struct {
                int64_t id;
                enum probe answer;
                bool final; /* the id was given to a message before it was asked for */
        } answers[PROBES_MAX];
        unsigned answer_count, probes, failures;
        struct timer *timer;
        TAILQ_ENTRY(tg_doubt) next;
};

struct records_wait {
        struct telegram *tg;    /* NULL: it was closed */
        struct tg_doubt *doubt; /* NULL: it has ended, or the adapter starts */
};

static void step(struct tg_doubt *b);

/* ---- the end ---- */

static void doubt_free(struct tg_doubt *b)
{
        if (b->wait)
                b->wait->tg = NULL;
        tg_call_abort(b->call);
        timer_free(b->timer);
        json_decref(b->markup);
        free(b->topic);
        free(b->channel);
        free(b->chat);
        free(b);
}

/* Frees it. False: the road no longer waits for the result. */
static bool finish(struct tg_doubt *b, const struct send_result *result)
{
        struct telegram *tg = b->adapter->self;
        bool taken;

        log_info("looked for a message that may have arrived", LOG_S("adapter", b->adapter->name),
                 LOG_I("delivery", b->delivery), LOG_I("probes", b->probes),
                 LOG_S("result", result->why));
        TAILQ_REMOVE(&tg->doubts, b, next);
        taken = delivery_result(b->adapter->road, b->delivery, b->fence, result);
        doubt_free(b);
        return taken;
}

static void end_unsure(struct tg_doubt *b, const char *why)
{
        char text[400];

        snprintf(text, sizeof(text), "it may have arrived: %s", why);
        finish(b, &(struct send_result){ .outcome = SEND_UNSURE,
                                         .kind = ERR_NET,
                                         .why = text,
                                         .retry_after_ms = -1 });
}

static void end_found(struct tg_doubt *b, int64_t id)
{
        struct telegram *tg = b->adapter->self;
        char chat[24], text[24], why[120];

        snprintf(chat, sizeof(chat), "%s", b->chat);
        snprintf(text, sizeof(text), "%" PRId64, id);
        snprintf(why, sizeof(why),
                 b->topic ? "the topic had been created: an update says so"
                          : "it had arrived: message %" PRId64
                            " is the bot's own and no other (asked %u times)",
                 id, b->probes);
        /* else it is looked for again, and must not seem to be another's */
        if (finish(b, &(struct send_result){ .outcome = SEND_DONE,
                                             .platform_id = text,
                                             .why = why,
                                             .retry_after_ms = -1 }))
                tg_ids_note(tg, chat, id, 0);
        tg_reconcile_progress(tg);
}

static void end_not_arrived(struct tg_doubt *b)
{
        char why[160];

        if (b->topic)
                snprintf(why, sizeof(why), "the topic was not created: no update says so");
        else if (b->after == b->before + 1)
                snprintf(why, sizeof(why),
                         "it certainly did not arrive: there is no message between %" PRId64
                         " and %" PRId64,
                         b->before, b->after);
        else
                snprintf(why, sizeof(why),
                         "it certainly did not arrive: all messages between %" PRId64
                         " and %" PRId64 " are others (asked %u times)",
                         b->before, b->after, b->probes);
        finish(b,
               &(struct send_result){
                       .outcome = SEND_RETRY, .kind = ERR_NET, .why = why, .retry_after_ms = 0 });
}

/* ---- asking ---- */

static enum probe read_probe(const struct tg_answer *a)
{
        if (a->status == 0 || a->status == 429 || a->status >= 500)
                return PROBE_AGAIN;
        if (a->ok || !a->genuine || a->status != 400 || a->migrated)
                return PROBE_ODD;
        if (strstr(a->why, "message is not modified"))
                return PROBE_OWN;
        if (strstr(a->why, "message can't be edited"))
                return PROBE_OTHERS;
        return strstr(a->why, "message to edit not found") ? PROBE_NONE : PROBE_ODD;
}

/* No answer, or "later": asks again after a pause. */
static void ask_again(struct tg_doubt *b, const struct tg_answer *a)
{
        unsigned shift = b->failures < 6 ? b->failures : 6;
        int64_t wait = (int64_t)RETRY_MS << shift;

        if (++b->failures > FAILURES_MAX) {
                end_unsure(b, "Telegram could not be asked");
                return;
        }
        wait = wait > RETRY_MAX_MS ? RETRY_MAX_MS : wait;
        timer_start(b->timer, a->retry_after_ms > wait ? a->retry_after_ms : wait);
}

static void on_probe(void *arg, const struct tg_answer *a)
{
        struct tg_doubt *b = arg;
        enum probe answer = read_probe(a);
        char why[350];

        b->call = NULL;
        if (answer == PROBE_AGAIN) {
                ask_again(b, a);
        } else if (a->migrated) {
                tg_chat_moved(b->adapter->self, b->channel, a->migrated);
                end_unsure(b, MOVED);
        } else if (answer == PROBE_ODD) {
                snprintf(why, sizeof(why),
                         "an edit without changes got an unexpected answer: %.250s",
                         a->ok ? "it changed a message" : a->why);
                end_unsure(b, why);
        } else if (b->asked == b->control && answer != PROBE_OWN) {
                end_unsure(b, "Telegram does not recognise an earlier message of the bot");
        } else if (b->asked == b->control) {
                b->controlled = true;
                step(b);
        } else if (answer == PROBE_OWN) {
                end_found(b, b->asked);
        } else {
                b->failures = 0;
                b->answers[b->answer_count].id = b->asked;
                b->answers[b->answer_count].answer = answer;
                b->answers[b->answer_count++].final = b->asked_final;
                step(b);
        }
}

static void on_chat_type(void *arg, const struct tg_answer *a)
{
        struct tg_doubt *b = arg;
        const char *type = json_str(a->result, "type", "");

        b->call = NULL;
        if (a->status == 0 || a->status == 429 || a->status >= 500) {
                ask_again(b, a);
        } else if (!a->ok || strcmp(type, "supergroup") != 0) {
                end_unsure(b, a->ok ? "in a channel, the bot's posts look like those of others"
                                    : a->why);
        } else {
                b->needs_chat = false;
                step(b);
        }
}

static void ask(struct tg_doubt *b, const char *method, int64_t id, tg_answer_fn *done)
{
        struct telegram *tg = b->adapter->self;
        int64_t wait = delivery_take_probe(b->adapter->road, b->adapter->name, b->channel);
        json_t *params;

        if (wait > 0) {
                timer_start(b->timer, wait);
                return;
        }
        b->probes++;
        b->asked = id;
        b->asked_final = id < b->after || id <= tg_ids_highest(tg, b->chat);
        params = json_object();
        tg_call_set_id(params, "chat_id", b->chat);
        if (id > 0)
                json_object_set_new(params, "message_id", json_integer(id));
        if (id > 0 && id != b->control && b->markup) /* else its buttons would vanish */
                json_object_set(params, "reply_markup", b->markup);
        b->call = tg_call_start(tg,
                                &(struct tg_request){ .method = method,
                                                      .params = params,
                                                      .total_ms = PROBE_MS,
                                                      .repeatable = true },
                                done, b);
        json_decref(params);
}

/* ---- judging ---- */

static void add_known(struct tg_doubt *b, int64_t id)
{
        int64_t at = id - b->first;

        if (at >= 0 && at < TG_IDS_MAX)
                b->known[at / 8] |= (uint8_t)(1u << (at % 8));
}

static bool is_known(const struct tg_doubt *b, int64_t id)
{
        int64_t at = id - b->first;

        return at >= 0 && at < TG_IDS_MAX && (b->known[at / 8] & (1u << (at % 8)));
}

/* What became known before the search; tg_reconcile_known adds the rest. */
static void add_known_before(struct tg_doubt *b)
{
        const struct telegram *tg = b->adapter->self;
        int64_t last = tg_ids_highest(tg, b->chat);

        if (last >= b->first + TG_IDS_MAX)
                last = b->first + TG_IDS_MAX - 1;
        for (int64_t id = b->first; id <= last; id++) {
                if (tg_ids_known(tg, b->chat, id))
                        add_known(b, id);
        }
}

/* It was found out once that this id was given later; a crash must not forget it. */
static void set_after(struct tg_doubt *b, int64_t id)
{
        char text[80];

        b->after = id;
        add_known(b, id);
        snprintf(text, sizeof(text), "%.40s:%" PRId64 ":%" PRId64, b->chat, b->before, id);
        delivery_set_read_from(b->adapter->road, b->delivery, b->fence, text);
}

/* NULL: not asked for yet, or only before it was given to a message. */
static const enum probe *answer_to(const struct tg_doubt *b, int64_t id)
{
        for (unsigned i = 0; i < b->answer_count; i++) {
                if (b->answers[i].id == id && (b->answers[i].final || !b->after || id > b->after))
                        return &b->answers[i].answer;
        }
        return NULL;
}

/*
 * Unknown ids that were not asked for: how many, counted up to CROWD + 1, and the first (0: none).
 */
static int count_unknown(const struct tg_doubt *b, int64_t *first)
{
        int64_t last = b->after ? b->after + b->look_past : b->before + LOOK_AHEAD;
        int n = 0;

        *first = 0;
        for (int64_t id = b->before + 1; id <= last && n <= CROWD; id++) {
                if (!is_known(b, id) && !answer_to(b, id) && n++ == 0)
                        *first = id;
        }
        return n;
}

/* The first id between `before` and `after` that may be ours; 0: none. */
static int64_t missing_id(const struct tg_doubt *b, bool *asked)
{
        *asked = false;
        for (int64_t id = b->before + 1; id < b->after; id++) {
                const enum probe *answer;

                if (is_known(b, id))
                        continue;
                answer = answer_to(b, id);
                if (!answer || *answer != PROBE_OTHERS)
                        return id;
                *asked = true;
        }
        return 0;
}

/* Waits for messages that show more; ends the search when its time is over. */
static void wait_for_news(struct tg_doubt *b, int64_t now, const char *why)
{
        if (b->after && b->until_ms > now + MISSING_MS)
                b->until_ms = now + MISSING_MS;
        if (now < b->until_ms)
                timer_start(b->timer, b->until_ms - now);
        else
                end_unsure(b, why);
}

/* There is nothing left to ask for. */
static void conclude(struct tg_doubt *b, int64_t now)
{
        bool asked;
        int64_t missing = b->after ? missing_id(b, &asked) : 0;
        char why[120];

        if (b->after && !missing) {
                if (!tg_ids_in_order(b->adapter->self, b->chat))
                        end_unsure(b, "Telegram's message ids are not in order");
                else if (!asked || b->controlled)
                        end_not_arrived(b);
                else if (b->control)
                        ask(b, "editMessageReplyMarkup", b->control, on_probe);
                else
                        end_unsure(b, "there is no earlier message of the bot to compare with");
                return;
        }
        snprintf(why, sizeof(why), "message %" PRId64 " is not known, and not there", missing);
        wait_for_news(b, now, missing ? why : "no later message showed that it did not");
}

static void step_topic(struct tg_doubt *b, int64_t now)
{
        int64_t id = tg_topic_find(b->adapter->self, b->chat, b->topic, b->before);

        if (id > 0)
                end_found(b, id);
        else if (b->quiet)
                end_not_arrived(b);
        else if (now < b->until_ms)
                timer_start(b->timer, (now < b->settled_ms ? b->settled_ms : b->until_ms) - now);
        else
                end_unsure(b, "Telegram did not say whether more updates wait");
}

static void step(struct tg_doubt *b)
{
        int64_t now = loop_now_ms(b->adapter->loop), id;
        int count;

        if (b->wait || b->call)
                return;
        timer_stop(b->timer);
        if (b->topic) {
                step_topic(b, now);
                return;
        }
        if (now < b->settled_ms) {
                timer_start(b->timer, b->settled_ms - now);
                return;
        }
        if (b->after - b->before > TG_IDS_MAX) {
                end_unsure(b, "too many messages came after it");
                return;
        }
        count = count_unknown(b, &id);
        if (b->after && b->patient_ms == 0)
                b->patient_ms = now + CROWD_MS;
        if (count > CROWD && now < b->patient_ms && !tg_ids_own_space(b->chat)) {
                timer_start(b->timer, LOOK_MS);
                return;
        }
        if (id && b->ambiguous)
                wait_for_news(b, now, "an earlier message of this chat may have arrived, too");
        else if ((b->needs_chat || id) && (now >= b->until_ms || b->probes >= PROBES_MAX))
                end_unsure(b, "it was asked for too often, or for too long");
        else if (b->needs_chat)
                ask(b, "getChat", 0, on_chat_type);
        else if (id)
                ask(b, "editMessageReplyMarkup", id, on_probe);
        else
                conclude(b, now);
}

static void on_timer(void *arg)
{
        step(arg);
}

/* ---- what is known ---- */

/* The id in a record: of ours the platform's id, of others "CHAT:ID". */
static bool read_record(const struct message_record *m, int64_t *id)
{
        const char *colon = strrchr(m->id, ':');
        size_t n = colon ? (size_t)(colon - m->id) : 0;

        if (m->own)
                return tg_ids_parse(m->id, id);
        return colon && strlen(m->channel) == n && strncmp(m->id, m->channel, n) == 0 &&
               tg_ids_parse(colon + 1, id);
}

static void note_own(struct tg_doubt *b, const struct message_record *m, int64_t id)
{
        /* sends of a chat follow each other, unless it has two names */
        if (id > b->before && strcmp(b->channel, b->chat) == 0)
                b->before = id;
        if (m->plain && id > b->control)
                b->control = id;
}

/* b: also what they say about its chat; NULL: no doubt. */
static void note_records(struct telegram *tg, const struct message_records *records,
                         struct tg_doubt *b)
{
        bool newest_is_known = records->whole || (b && !tg_ids_own_space(b->chat));
        int64_t id;

        for (size_t i = 0; i < records->count; i++) {
                const struct message_record *m = &records->items[i];
                const char *chat = tg_chat_id(tg, m->channel);
                bool moved = strcmp(chat, m->channel) != 0;
                bool ours = b && m->own && strcmp(chat, b->chat) == 0;

                if (!read_record(m, &id))
                        continue;
                if (!moved)
                        tg_ids_note(tg, chat, id, 0);
                if (b && !moved && tg_ids_same_space(b->chat, chat))
                        add_known(b, id);
                if (ours && moved)
                        b->ambiguous = true; /* its id may be of the chat before it moved */
                else if (ours)
                        note_own(b, m, id);
                newest_is_known = newest_is_known || ours;
        }
        /* the ids of the account are the newest, but those of a supergroup may be old ones */
        if (b)
                b->ambiguous = b->ambiguous || records->ambiguous || !newest_is_known;
}

static void on_records(void *arg, const struct message_records *records)
{
        struct records_wait *wait = arg;
        struct telegram *tg = wait->tg;
        struct tg_doubt *b = wait->doubt;

        free(wait);
        if (!tg)
                return;
        if (b)
                b->wait = NULL;
        else
                tg->loading = NULL;
        if (records)
                note_records(tg, records, b);
        if (!b) {
                tg_link_listen(tg);
        } else if (!records) {
                end_unsure(b, "the store could not be read");
        } else {
                step(b);
        }
}

static void read_all(struct telegram *tg, const struct delivery *d, struct tg_doubt *b)
{
        struct records_wait *wait = mem_zalloc(sizeof(*wait));

        wait->tg = tg;
        wait->doubt = b;
        if (b)
                b->wait = wait;
        else
                tg->loading = wait;
        message_records_read(tg->adapter->road, d, on_records, wait);
}

void tg_reconcile_open(struct telegram *tg)
{
        if (!tg->adapter->road)
                tg_link_listen(tg);
        else if (!tg->loading)
                read_all(tg, &(struct delivery){ .adapter = tg->adapter->name, .channel = "" },
                         NULL);
}

/* "CHAT:BEFORE" as tg_reconcile_from wrote it, or "CHAT:BEFORE:AFTER" as set_after did. */
static const char *read_position(struct tg_doubt *b, const char *position)
{
        size_t n = strlen(b->chat);
        char *end;

        if (!position || !strchr(position, ':'))
                return "nothing was known of the chat before it was sent";
        if (strncmp(position, b->chat, n) != 0 || position[n] != ':')
                return MOVED;
        b->first = b->before = strtoll(position + n + 1, &end, 10);
        if (*end == ':') {
                b->after = strtoll(end + 1, NULL, 10);
                b->look_past = LOOK_AHEAD;
                add_known(b, b->after);
        }
        return NULL;
}

/* NULL: it is a message. */
static char *wanted_topic(const struct delivery *d)
{
        json_t *payload;
        char *name;

        if (d->kind != DELIVER_THREAD)
                return NULL;
        payload = json_read(d->payload, strlen(d->payload), NULL);
        name = tg_topic_name(payload);
        json_decref(payload);
        return name;
}

void tg_reconcile(struct adapter *a, const struct delivery *d)
{
        struct telegram *tg = a->self;
        struct tg_doubt *b = mem_zalloc(sizeof(*b));
        const char *wrong;
        char why[200];

        tg_send_abort(tg, d->id); /* else it might arrive after it was looked for */
        b->adapter = a;
        b->delivery = d->id;
        b->fence = d->fence;
        b->channel = mem_strdup(d->channel);
        b->chat = mem_strdup(tg_chat_id(tg, d->channel));
        b->markup = tg_send_markup(d);
        b->topic = wanted_topic(d);
        b->settled_ms = loop_now_ms(a->loop) + tg->conf->reconcile_after_ms;
        b->until_ms = d->reconcile_until_ms;
        b->needs_chat = tg_ids_own_space(b->chat);
        b->timer = timer_new(a->loop, on_timer, b);
        wrong = read_position(b, d->read_from);
        if (wrong) {
                snprintf(why, sizeof(why), "it may have arrived: %s", wrong);
                adapter_refuse(a, d, SEND_UNSURE, ERR_NET, why);
                doubt_free(b);
                return;
        }
        add_known_before(b);
        if (TAILQ_EMPTY(&tg->doubts)) /* else many would put it off again and again */
                tg_link_hurry(tg);
        TAILQ_INSERT_TAIL(&tg->doubts, b, next);
        read_all(tg, d, b);
}

/* The message that is answered; 0: none. A parser would be slow for every send. */
static int64_t read_question(const char *payload)
{
        static const char member[] = "\"replyTo\":\"";
        const char *at = strstr(payload, member);

        return at ? strtoll(at + strlen(member), NULL, 10) : 0;
}

void tg_reconcile_from(struct adapter *a, const struct delivery *d, char *out, size_t size)
{
        struct telegram *tg = a->self;
        const char *chat = tg_chat_id(tg, d->channel);
        int64_t id = tg_ids_highest(tg, chat), question;

        out[0] = '\0';
        if (!tg_ids_parse(chat, &question))
                return;                /* a public name: its ids are not ours to compare */
        if (d->kind == DELIVER_THREAD) /* found by its name: it must be later than others */
                question = tg_topic_newest(tg, chat);
        else
                question = strcmp(chat, d->channel) == 0 ? read_question(d->payload) : 0;
        id = question > id ? question : id;
        if (id > 0 || d->kind == DELIVER_THREAD)
                snprintf(out, size, "%s:%" PRId64, chat, id);
}

/* Ids became known, or a doubt ended: others may be decided now. */
void tg_reconcile_progress(struct telegram *tg)
{
        struct tg_doubt *b;

        TAILQ_FOREACH(b, &tg->doubts, next) {
                if ((b->after || b->topic) && !b->call && !b->wait)
                        timer_start(b->timer, 0); /* ends it, perhaps: not inside this loop */
        }
}

void tg_reconcile_sent(struct telegram *tg, const char *chat, int64_t id, int64_t started_ms)
{
        struct tg_doubt *b, *following;

        for (b = TAILQ_FIRST(&tg->doubts); b; b = following) {
                following = TAILQ_NEXT(b, next);
                if (!tg_ids_same_space(b->chat, chat) || started_ms < b->settled_ms || b->after ||
                    b->topic)
                        continue;
                if (id <= b->before) {
                        end_unsure(b, "Telegram's message ids do not only grow");
                        following = TAILQ_FIRST(&tg->doubts);
                } else {
                        set_after(b, id);
                }
        }
        tg_reconcile_progress(tg);
}

void tg_reconcile_received(struct telegram *tg, const char *chat, int64_t id)
{
        struct tg_doubt *b;

        TAILQ_FOREACH(b, &tg->doubts, next) {
                if (!b->quiet || b->after || b->topic || id <= b->quiet_highest ||
                    id <= b->before || !tg_ids_same_space(b->chat, chat))
                        continue;
                set_after(b, id);
                b->look_past = LOOK_AHEAD; /* updates may come later than they should */
        }
        tg_reconcile_progress(tg);
}

void tg_reconcile_known(struct telegram *tg, const char *chat, int64_t id)
{
        struct tg_doubt *b;

        TAILQ_FOREACH(b, &tg->doubts, next) {
                if (tg_ids_same_space(b->chat, chat))
                        add_known(b, id);
        }
}

void tg_reconcile_quiet(struct telegram *tg, int64_t asked_ms)
{
        struct tg_doubt *b;

        TAILQ_FOREACH(b, &tg->doubts, next) {
                if (b->quiet || b->wait || asked_ms < b->settled_ms)
                        continue;
                b->quiet = true;
                b->quiet_highest = tg_ids_highest(tg, b->chat);
        }
        tg_reconcile_progress(tg);
}

bool tg_reconcile_needs_quiet(const struct telegram *tg)
{
        int64_t now = loop_now_ms(tg->adapter->loop);
        const struct tg_doubt *b;

        TAILQ_FOREACH(b, &tg->doubts, next) {
                if (!b->quiet && !b->after && !b->wait && now >= b->settled_ms + HELD_MS)
                        return true;
        }
        return false;
}

void tg_reconcile_close(struct telegram *tg)
{
        struct tg_doubt *b;

        if (tg->loading)
                tg->loading->tg = NULL;
        while ((b = TAILQ_FIRST(&tg->doubts))) {
                const struct send_result result = { .outcome = SEND_UNSURE,
                                                    .kind = ERR_CANCELLED,
                                                    .why = "the adapter was stopped",
                                                    .retry_after_ms = -1 };

                TAILQ_REMOVE(&tg->doubts, b, next);
                delivery_result(b->adapter->road, b->delivery, b->fence, &result);
                doubt_free(b);
        }
}
