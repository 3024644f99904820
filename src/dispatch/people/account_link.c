#include "dispatch/people/account_link.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "dispatch/access/access_check.h"
#include "dispatch/dispatch_private.h"

#define TRIERS_MAX 10000

/* A code that waits for the other account. */
struct offer {
        char code[HUMAN_CODE_SIZE];
        char *platform, *user;
        int64_t until_ms;
};

struct account_links {
        struct map by_code;        /* → struct offer */
        struct offer *used;        /* the one that was redeemed last, for whoever borrowed it */
        struct rate_limits *tries; /* how often an account has typed a code */
        char shown[HUMAN_CODE_TEXT_SIZE];
};

struct account_links *account_links_new(void)
{
        struct account_links *l = mem_zalloc(sizeof(*l));

        map_init(&l->by_code);
        l->tries = rate_limits_new(TRIERS_MAX);
        return l;
}

static void offer_free(struct offer *o)
{
        if (!o)
                return;
        free(o->platform);
        free(o->user);
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
        offer_free(l->used);
        rate_limits_free(l->tries);
        free(l);
}

/* Drops what is over, and what this account had. At most LINK_CODES_MAX are looked at. */
static void sweep(struct account_links *l, const struct identity *who, int64_t now_ms)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&l->by_code, &i, &key, &value);) {
                const struct offer *o = value;

                if (o->until_ms <= now_ms ||
                    (strcmp(o->platform, who->platform) == 0 && strcmp(o->user, who->user) == 0))
                        offer_free(map_remove(&l->by_code, key));
        }
}

const char *account_link_offer(struct account_links *l, const struct identity *who, int64_t now_ms)
{
        struct offer *o;

        sweep(l, who, now_ms);
        if (l->by_code.count >= LINK_CODES_MAX)
                return NULL;
        o = mem_zalloc(sizeof(*o));
        *o = (struct offer){ .platform = mem_strdup(who->platform),
                             .user = mem_strdup(who->user),
                             .until_ms = now_ms + LINK_VALID_MS };
        human_code_new(o->code);
        offer_free(map_put(&l->by_code, o->code, o));
        return human_code_format(o->code, l->shown);
}

bool account_link_redeem(struct account_links *l, const char *text, int64_t now_ms,
                         struct identity *owner)
{
        char code[HUMAN_CODE_SIZE];
        struct offer *o = human_code_parse(text, code) ? map_remove(&l->by_code, code) : NULL;

        if (!o)
                return false;
        offer_free(l->used);
        l->used = o;
        *owner = (struct identity){ o->platform, o->user };
        return o->until_ms > now_ms;
}

bool account_link_count_try(struct account_links *l, const char *adapter, const char *user,
                            int64_t now_ms)
{
        struct rate_key who = { .adapter = adapter, .channel = "", .sender = user };
        struct turn_rate rate = { LINK_TRIES, LINK_VALID_MS / 1000 };

        if (rate_limit_wait_ms(l->tries, &who, rate, now_ms) > 0)
                return false;
        rate_limit_count(l->tries, &who, rate, now_ms);
        return true;
}

bool account_link_parse(const char *text, const char **code)
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

/* ---- the guard ---- */

static bool tell_code(struct matter *m, const struct identity *self)
{
        const char *code;

        if (!command_is_heard(m))
                return false;
        code = account_link_offer(m->d->policy->links, self, m->now_ms);
        if (code)
                matter_notice(
                        m,
                        "Your code is %s. Within ten minutes, write \"/link %s\" to me from your "
                        "other account, and I will know that both are you.",
                        code, code);
        persons_record(m->d->policy->persons, self->platform, m->in, m->now_ms, m->out);
        return matter_refuse(m, code ? "a code for another account was told (/link)"
                                     : "too many codes are under way (/link)");
}

static bool is_self(const struct identity *a, const struct identity *b)
{
        return strcmp(a->platform, b->platform) == 0 && strcmp(a->user, b->user) == 0;
}

static bool is_one_too_many(const struct persons *p, const struct identity *a,
                            const struct identity *b)
{
        struct identity others[PERSON_MAX_IDENTITIES];
        size_t n = persons_other_identities(p, a->platform, a->user, others, COUNT(others));

        n += persons_other_identities(p, b->platform, b->user, others, COUNT(others));
        return n + 2 > PERSON_MAX_IDENTITIES;
}

/*
 * Whoever has an admin type his code would be an admin himself: admins begin a link, others finish
 * it.
 */
static bool is_admin_as_person(const struct dispatch *d, const struct identity *self)
{
        struct incoming in = { .person = persons_lookup(d->policy->persons, self->platform,
                                                        self->user) };

        for (size_t i = 0; in.person > 0 && i < d->adapter_count; i++) {
                if (d->adapters[i].access && access_is_admin(d->adapters[i].access, &in))
                        return true;
        }
        return false;
}

/* A stranger is told only that it worked: he cannot make us talk by guessing. */
static bool use_code(struct matter *m, const struct identity *self, const char *code, bool stranger)
{
        struct runtime_policy *policy = m->d->policy;
        struct identity owner;
        int64_t person;

        if (!account_link_count_try(policy->links, m->in->adapter, self->user, m->now_ms))
                return matter_refuse(m, "the sender has typed too many codes (/link)");
        if (is_admin_as_person(m->d, self)) {
                matter_notice(m,
                              "This is an admin's account, and whoever gave you the code would "
                              "become an admin. If it is your own, write /link here and type the "
                              "new code there.");
                return matter_refuse(m, "an admin takes no codes of others (/link)");
        }
        if (!account_link_redeem(policy->links, code, m->now_ms, &owner) || is_self(&owner, self)) {
                if (!stranger)
                        matter_notice(m,
                                      "This is no code that waits for another account. Write /link "
                                      "to me there, and type the code here within ten minutes.");
                return matter_refuse(m, "the code is nobody's (/link)");
        }
        person = persons_lookup(policy->persons, self->platform, self->user);
        if (person > 0 && person == persons_lookup(policy->persons, owner.platform, owner.user)) {
                matter_notice(m, "I know already that both accounts are you.");
                return matter_refuse(m, "both accounts are one person already (/link)");
        }
        if (is_one_too_many(policy->persons, self, &owner)) {
                matter_notice(m, "I can remember at most %d accounts of one person.",
                              PERSON_MAX_IDENTITIES);
                return matter_refuse(m, "the two have more than %d accounts (/link)",
                                     PERSON_MAX_IDENTITIES);
        }
        persons_link_sender(policy->persons, self->platform, m->in, &owner, m->now_ms, m->out);
        matter_notice(m, "Done: I know now that this account and the one on %s are both you.",
                      owner.platform);
        return matter_refuse(m, "two accounts became one person (/link)");
}

bool is_no_link(struct matter *m)
{
        struct identity self = { m->adapter->platform, m->in->sender_id };
        const char *code;
        struct access_verdict j;
        struct buf why;

        if (!m->d->policy || m->adapter->trusted || m->in->sender_is_bot || !self.user ||
            m->in->chat != CHAT_DM || strcmp(event_type(m->in), EVENT_MESSAGE_RECEIVED) != 0 ||
            !account_link_parse(m->in->text, &code))
                return true;
        buf_init(&why, 0);
        j = access_check_sender(m->d->policy, m->adapter, m->in, m->now_ms, &why);
        buf_release(&why);
        /* whoever may not speak is refused by the next guard */
        if (j.outcome == ACCESS_DENIED || (j.outcome == ACCESS_STRANGER && *code == '\0'))
                return true;
        if (m->dry)
                return matter_refuse(m, "it is the command /link");
        return *code ? use_code(m, &self, code, j.outcome == ACCESS_STRANGER) : tell_code(m, &self);
}
