#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/human_code.h"
#include "base/map.h"
#include "base/mem.h"
#include "dispatch/dispatch_private.h"

#define VALID_MS   (10 * 60 * 1000)
#define CODES_MAX  1000
#define TRIERS_MAX 10000

struct link_offer {
        char code[HUMAN_CODE_SIZE];
        struct identity owner; /* its strings are owned */
        int64_t until_ms;
};

struct account_links {
        struct map by_code;        /* → struct link_offer */
        struct rate_limits *tries; /* per account */
};

struct account_links *account_links_new(void)
{
        struct account_links *l = mem_zalloc(sizeof(*l));

        map_init(&l->by_code);
        l->tries = rate_limits_new(TRIERS_MAX);
        return l;
}

static void offer_free(struct link_offer *o)
{
        if (!o)
                return;
        free((char *)o->owner.platform);
        free((char *)o->owner.user);
        free(o);
}

void account_links_free(struct account_links *l)
{
        void *value;

        if (!l)
                return;
        for (size_t i = 0; map_each(&l->by_code, &i, NULL, &value);)
                offer_free(value);
        map_release(&l->by_code);
        rate_limits_free(l->tries);
        free(l);
}

/* "/link", "/link CODE", "/link@bot CODE". *code: where the code begins ("" without). */
static bool parse(const char *text, const char **code)
{
        const char *at = text ? text : "";

        if (strncmp(at, "/link", 5) != 0)
                return false;
        at += 5;
        if (*at == '@')
                at += strcspn(at, " ");
        if (*at != '\0' && !isspace((unsigned char)*at))
                return false;
        while (isspace((unsigned char)*at))
                at++;
        *code = at;
        return true;
}

/* ---- guard ---- */

bool account_link_guard(struct evaluation *e)
{
        const struct incoming *in = e->in;
        struct access_verdict v;
        const char *code;
        struct buf why;

        if (!e->d->policy || e->adapter->trusted || in->sender_is_bot || !in->sender_id ||
            in->chat != CHAT_DM || strcmp(e->type, EVENT_MESSAGE_RECEIVED) != 0 ||
            !parse(in->text, &code))
                return true;
        buf_init(&why, 0);
        v = access_check_sender(e->d->policy, e->adapter, in, e->now_ms, &why);
        buf_release(&why);
        /* left to the access guard */
        if (v.outcome == ACCESS_DENIED || (v.outcome == ACCESS_STRANGER && *code == '\0'))
                return true;
        e->link_code = code;
        e->is_stranger = v.outcome == ACCESS_STRANGER;
        return evaluation_refuse(e, "it is the command /link");
}

/* ---- execution ---- */

static bool same_identity(const struct identity *a, const struct identity *b)
{
        return strcmp(a->platform, b->platform) == 0 && strcmp(a->user, b->user) == 0;
}

static void send_code(struct evaluation *e, const struct identity *self)
{
        struct runtime_policy *policy = e->d->policy;
        struct map *codes = &policy->links->by_code;
        struct link_offer *o;
        char text[HUMAN_CODE_TEXT_SIZE];
        const char *key;
        void *value;

        if (!command_rate_guard(e))
                return;
        command_count(e);
        persons_record(policy->persons, self->platform, e->in, e->now_ms, e->out);
        /* replaces the account's previous code */
        for (size_t i = 0; map_each(codes, &i, &key, &value);) {
                o = value;
                if (o->until_ms <= e->now_ms || same_identity(&o->owner, self))
                        offer_free(map_remove(codes, key));
        }
        if (codes->count >= CODES_MAX) {
                evaluation_refuse(e, "too many codes are waiting (/link)");
                return;
        }
        o = mem_zalloc(sizeof(*o));
        o->owner = (struct identity){ mem_strdup(self->platform), mem_strdup(self->user) };
        o->until_ms = e->now_ms + VALID_MS;
        human_code_new(o->code);
        offer_free(map_put(codes, o->code, o));
        human_code_format(o->code, text);
        evaluation_notify(e,
                          "Your code is %s. Within ten minutes, write \"/link %s\" to me from "
                          "your other account to link the two.",
                          text, text);
        evaluation_refuse(e, "a code for another account was sent (/link)");
}

/*
 * An admin tricked into typing someone's code would make them an admin: admins start a link, others
 * finish it.
 */
static bool is_admin_anywhere(const struct dispatch *d, const struct identity *self)
{
        struct incoming in = { .person = persons_lookup(d->policy->persons, self->platform,
                                                        self->user) };

        for (size_t i = 0; in.person > 0 && i < d->adapter_count; i++) {
                if (d->adapters[i].access && access_is_admin(d->adapters[i].access, &in))
                        return true;
        }
        return false;
}

/* Uses up the code: merges the sender's person into the owner's. */
static void link_accounts(struct evaluation *e, const struct identity *self,
                          const struct identity *owner)
{
        struct persons *persons = e->d->policy->persons;
        int64_t person = persons_lookup(persons, self->platform, self->user);
        struct identity others[PERSON_MAX_IDENTITIES];
        size_t count = 2;

        count += persons_other_identities(persons, self->platform, self->user, others,
                                          COUNT(others));
        count += persons_other_identities(persons, owner->platform, owner->user, others,
                                          COUNT(others));
        if (person > 0 && person == persons_lookup(persons, owner->platform, owner->user)) {
                evaluation_notify(e, "I already know that both accounts are yours.");
                evaluation_refuse(e, "both accounts are one person already (/link)");
        } else if (count > PERSON_MAX_IDENTITIES) {
                evaluation_notify(e, "I can link at most %d accounts per person.",
                                  PERSON_MAX_IDENTITIES);
                evaluation_refuse(e, "the two have more than %d accounts (/link)",
                                  PERSON_MAX_IDENTITIES);
        } else {
                persons_link_sender(persons, self->platform, e->in, owner, e->now_ms, e->out);
                evaluation_notify(e, "Done: this account and the one on %s are linked now.",
                                  owner->platform);
                evaluation_refuse(e, "two accounts became one person (/link)");
        }
}

static void redeem_code(struct evaluation *e, const struct identity *self)
{
        struct account_links *l = e->d->policy->links;
        struct rate_key key = { e->in->adapter, "", e->in->sender_id };
        struct turn_rate rate = { LINK_TRIES, VALID_MS / 1000 };
        struct link_offer *o;
        char code[HUMAN_CODE_SIZE];

        if (rate_limit_wait_ms(l->tries, &key, rate, e->now_ms) > 0) {
                evaluation_refuse(e, "the sender has typed too many codes (/link)");
                return;
        }
        rate_limit_count(l->tries, &key, rate, e->now_ms);
        if (is_admin_anywhere(e->d, self)) {
                evaluation_notify(e, "This is an admin's account, and the person who gave you the "
                                     "code would become an admin. If the other account is your "
                                     "own, write /link here and type the new code there.");
                evaluation_refuse(e, "admins may not redeem another person's code (/link)");
                return;
        }
        o = human_code_parse(e->link_code, code) ? map_remove(&l->by_code, code) : NULL;
        if (o && o->until_ms > e->now_ms && !same_identity(&o->owner, self)) {
                link_accounts(e, self, &o->owner);
        } else {
                /* no answer for strangers: guessing must not make the bot talk */
                if (!e->is_stranger)
                        evaluation_notify(
                                e, "This code is not valid. Write /link to me from the other "
                                   "account, and type the code you get here within ten minutes.");
                evaluation_refuse(e, "no such code is waiting (/link)");
        }
        offer_free(o);
}

void account_link_run(struct evaluation *e)
{
        struct identity self = { e->adapter->platform, e->in->sender_id };

        buf_clear(&e->d->reason);
        if (*e->link_code)
                redeem_code(e, &self);
        else
                send_code(e, &self);
}
