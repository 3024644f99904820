/*
 * A first DM that arrives while there is no session leaves no trace: Discord lists no DMs, and no
 * conversation has its channel. So catch-up opens the DMs of people who may write one, which shows
 * the newest message: those named in `admins`, `dm`, `allow` and stored access rules; and where
 * everyone may write, people the bot has met lately.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_catchup.h"
#include "platform/discord/dc_id.h"
#include "rows/person_row.h"
#include "rows/policy_rows.h"

#define PEOPLE_MAX  500
#define MET_MAX     50 /* of those only met */
#define OPENED_FAST 40003

/* The people to ask about. Filled from the settings, then from the store. */
struct dm_people {
        struct dc_dm_scan *scan; /* NULL: no longer wanted */
        char *adapter;
        bool everyone;
        char ids[PEOPLE_MAX][DC_ID_SIZE];
        size_t count;
};

struct dc_dm_scan {
        struct dc_intake *in;
        struct dm_people *people; /* being read or asked about; NULL: the scan is over */
        bool reading;
        bool asking; /* Discord, about the next one */
        bool again;  /* begin again after the answer */
        size_t next;
        unsigned tries;
        bool failed;
        struct timer *retry;
};

/* "123", "user:123" or "discord:123"; others name no single person. */
static void add_person(struct dm_people *p, const char *text)
{
        const char *colon = strchr(text, ':'), *id = colon ? colon + 1 : text;

        if (colon && strncmp(text, "user:", 5) != 0 && strncmp(text, "discord:", 8) != 0)
                return;
        for (size_t i = 0; i < p->count; i++)
                if (strcmp(p->ids[i], id) == 0)
                        return;
        if (dc_id_valid(id) && p->count < PEOPLE_MAX)
                snprintf(p->ids[p->count++], DC_ID_SIZE, "%s", id);
}

static void add_list(struct dm_people *p, const struct setting_list *list, bool opens)
{
        for (size_t i = 0; i < list->count; i++) {
                const char *item = list->items[i];

                if (opens && (strcmp(item, "*") == 0 || strcmp(item, "everyone") == 0))
                        p->everyone = true;
                else
                        add_person(p, item);
        }
}

/* ---- on the reader's thread ---- */

static int add_identities(struct store_stmt *s, struct dm_people *p, struct error *err)
{
        struct identity identity;
        int64_t person;
        int rc;

        while ((rc = person_row_next_identity(s, &identity, &person, err)) == 1)
                if (strcmp(identity.platform, "discord") == 0)
                        add_person(p, identity.user);
        return rc;
}

static int read_people(struct store_tx *tx, void *arg, struct error *err)
{
        struct dm_people *p = arg;
        struct store_stmt *s = access_rule_row_list(tx);
        int64_t now_ms = clock_wall_ms();
        struct access_rule rule;
        int rc;

        while ((rc = access_rule_row_next(s, &rule, err)) == 1) {
                if (rule.deny || !rule.enabled ||
                    (rule.expires_ms > 0 && rule.expires_ms <= now_ms) ||
                    (rule.adapter && strcmp(rule.adapter, p->adapter) != 0) ||
                    (rule.place && strcmp(rule.place, "dm") != 0))
                        continue;
                if (rule.user &&
                    (strcmp(rule.user, "*") == 0 || strcmp(rule.user, "discord:*") == 0))
                        p->everyone = true;
                else if (rule.user)
                        add_person(p, rule.user);
                else if (add_identities(person_row_list_identities(tx, rule.person, 0), p, err) <
                         0) {
                        rows_end(s);
                        return -1;
                }
        }
        if (rc < 0 || !p->everyone)
                return rc;
        return add_identities(person_row_list_met(tx, "discord", p->adapter, MET_MAX), p, err);
}

/* ---- on the loop ---- */

static void people_free(struct dm_people *p)
{
        free(p->adapter);
        free(p);
}

static void drop_people(struct dc_dm_scan *s)
{
        if (s->people && s->reading)
                s->people->scan = NULL; /* on_people frees it */
        else if (s->people)
                people_free(s->people);
        s->people = NULL;
}

static void open_next(void *scan);

static void on_people(void *arg, const struct error *err)
{
        struct dm_people *p = arg;
        struct dc_dm_scan *s = p->scan;

        if (!s) {
                people_free(p);
                return;
        }
        if (err)
                log_warn("cannot read which DMs to open", LOG_S("adapter", p->adapter),
                         LOG_S("why", err->text));
        s->reading = false;
        s->failed = s->failed || err;
        open_next(s);
}

static void on_opened(void *arg, const struct dc_answer *a)
{
        struct dc_dm_scan *s = arg;
        const char *channel = json_str(a->result, "id", NULL);
        bool unavailable = dc_rest_is_unavailable(a) || a->code == OPENED_FAST;
        int64_t wait = unavailable ? dc_readback_wait_ms(s->in, s->tries++) : -1;

        s->asking = false;
        if (s->again) {
                s->again = false;
                dc_dm_scan_begin(s);
                return;
        }
        if (wait >= 0) {
                timer_start(s->retry, wait);
                return;
        }
        if (a->ok && dc_id_valid(channel)) {
                if (s->in->hooks.dm)
                        s->in->hooks.dm(s->in->hooks.ctx, s->people->ids[s->next], channel);
                dc_catchup_dm(s->in->catchup, channel, a->result);
        }
        s->failed = s->failed || unavailable;
        s->tries = 0;
        s->next++;
        open_next(s);
}

static void open_next(void *scan)
{
        struct dc_dm_scan *s = scan;
        struct dm_people *p = s->people;
        struct dc_channel_info info;

        while (s->next < p->count && dc_cache_channel(s->in->cache, p->ids[s->next], &info))
                s->next++; /* a channel of `allow` */
        if (s->next < p->count) {
                s->asking = true;
                s->in->hooks.open_dm(s->in->hooks.ctx, p->ids[s->next], on_opened, s);
                return;
        }
        people_free(p);
        s->people = NULL;
}

void dc_dm_scan_begin(struct dc_dm_scan *s)
{
        const struct adapter *a = s->in->o.adapter;
        struct dm_people *p;

        if (s->asking) {
                s->again = true;
                return;
        }
        drop_people(s);
        timer_stop(s->retry);
        s->people = p = mem_zalloc(sizeof(*p));
        s->next = 0;
        s->tries = 0;
        p->scan = s;
        p->adapter = mem_strdup(a->name);
        if (a->common) {
                add_list(p, &a->common->admins, false);
                add_list(p, &a->common->dm, true);
                add_list(p, &a->common->allow, !a->common->dm.set);
        }
        s->reading = a->store != NULL;
        if (s->reading)
                store_read(a->store, read_people, on_people, p);
        else
                open_next(s);
}

bool dc_dm_scan_is_over(const struct dc_dm_scan *s)
{
        return !s->people;
}

bool dc_dm_scan_take_failed(struct dc_dm_scan *s)
{
        bool failed = s->failed;

        s->failed = false;
        return failed;
}

struct dc_dm_scan *dc_dm_scan_new(struct dc_intake *in)
{
        struct dc_dm_scan *s = mem_zalloc(sizeof(*s));

        s->in = in;
        s->retry = timer_new(in->o.adapter->loop, open_next, s);
        return s;
}

void dc_dm_scan_free(struct dc_dm_scan *s)
{
        if (!s)
                return;
        drop_people(s);
        timer_free(s->retry);
        free(s);
}
