/*
 * session: by which name an agent that remembers by itself finds what it remembers.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agents_private.h"
#include "base/crypto.h"
#include "base/mem.h"

/* No other conversation, and no other database, has this name. */
static char *name_of_its_own(const struct answers *w, const struct turn_run *run)
{
        unsigned char mac[SHA256_SIZE];
        char hex[SHA256_HEX_SIZE];
        char *whose = mem_printf("session/%s\n%s\n%s\n%s\n%" PRId64, run->agent, run->adapter,
                                 run->channel, run->thread ? run->thread : "", run->reset_turn);

        crypto_hmac_sha256(w->secret, sizeof(w->secret), whose, strlen(whose), mac);
        free(whose);
        return mem_printf("conv-%.24s", crypto_hex(mac, sizeof(mac), hex));
}

/*
 * Who alone has spoken; NULL: several, or nobody in particular. Who reads along listens to
 * everybody.
 */
static const char *only_sender(const struct turn_run *run)
{
        const char *first = run->inputs[0]->sender_id;

        if (!first || !*first || run->mode == MODE_AMBIENT)
                return NULL;
        for (unsigned i = 1; i < run->input_count; i++) {
                const char *sender = run->inputs[i]->sender_id;

                if (!sender || strcmp(sender, first) != 0)
                        return NULL;
        }
        return first;
}

/* The ids of two never make the name of a third, whatever is in them. */
static void add_id(struct buf *b, const char *id, bool bare)
{
        if (b->len > 0)
                buf_addch(b, ':');
        for (; *id; id++) {
                if (!bare && strchr(":%#*", *id))
                        buf_addf(b, "%%%02X", (unsigned)*id);
                else
                        buf_addch(b, *id);
        }
}

/*
 * telegram:tg:7:-100, in a thread telegram:tg:7:-100:12, after /new with #42 behind it; a part that
 * does not count is left out.
 */
static char *name_of_parts(const struct turn_run *run, const struct agent_common *conf)
{
        const char *platform = run->inputs[0]->platform, *sender = only_sender(run);
        bool per_user = strcmp(conf->session, "perChat") != 0, bare = conf->session_bare;
        bool per_chat = strcmp(conf->session, "perUser") != 0 || !sender;
        int64_t anew;
        struct buf b;

        buf_init(&b, 0);
        if (!bare) {
                add_id(&b, platform ? platform : run->adapter, bare);
                add_id(&b, run->adapter, bare);
        }
        if (per_user)
                add_id(&b, sender ? sender : "*", bare || !sender);
        if (per_chat)
                add_id(&b, run->channel, bare);
        if (per_chat && !bare && run->thread)
                add_id(&b, run->thread, bare);
        if (per_user && sender)
                anew = per_chat ? run->resets.person_in_chat : run->resets.person;
        else
                anew = run->resets.chat;
        if (anew > 0)
                buf_addf(&b, "#%" PRId64, anew);
        return buf_take(&b);
}

char *agent_session(const struct agent *a, const struct turn_run *run)
{
        const struct agent_slot *i = (const struct agent_slot *)a;

        if (strcmp(i->conf->common.session, "conversation") != 0)
                return name_of_parts(run, &i->conf->common);
        return run->session ? mem_strdup(run->session) : name_of_its_own(&i->all->answers, run);
}
