#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agents_private.h"
#include "base/mem.h"

#define FOLDER_NAME_CUT 60 /* of a name, before the digest */

/* Escapes separators, so that different ids give different names. */
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

/* telegram:tg:7:-100, with thread telegram:tg:7:-100:12, after /new telegram:tg:7:-100#42. */
static char *join_ids(const struct turn_run *run, const struct agent_common *conf)
{
        const char *platform = run->inputs[0]->platform, *sender = run->inputs[0]->sender_id;
        bool per_user = strcmp(conf->session, "perChat") != 0, bare = conf->session_bare, per_chat;
        int64_t reset;
        struct buf b;

        /* NULL: several senders, an unknown one, or an ambient turn */
        if (run->mode == MODE_AMBIENT || (sender && !*sender))
                sender = NULL;
        for (unsigned i = 1; i < run->input_count && sender; i++) {
                const char *other = run->inputs[i]->sender_id;

                if (!other || strcmp(sender, other) != 0)
                        sender = NULL;
        }
        per_chat = strcmp(conf->session, "perUser") != 0 || !sender;
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
                reset = per_chat ? run->resets.person_in_chat : run->resets.person;
        else
                reset = run->resets.chat;
        if (reset > 0)
                buf_addf(&b, "#%" PRId64, reset);
        return buf_take(&b);
}

char *agent_session(const struct agent *a, const struct turn_run *run)
{
        const struct agent_slot *s = (const struct agent_slot *)a;
        unsigned char mac[SHA256_SIZE];
        char hex[SHA256_HEX_SIZE], *text;

        if (strcmp(s->conf->common.session, "conversation") != 0)
                return join_ids(run, &s->conf->common);
        if (run->session)
                return mem_strdup(run->session);
        text = mem_printf("session/%s\n%s\n%s\n%s\n%" PRId64, run->agent, run->adapter,
                          run->channel, run->thread ? run->thread : "", run->reset_turn);
        crypto_hmac_sha256(s->all->secret, sizeof(s->all->secret), text, strlen(text), mac);
        free(text);
        return mem_printf("conv-%.24s", crypto_hex(mac, sizeof(mac), hex));
}

char *agent_folder_name(const char *of, bool anybodys)
{
        char digest[SHA256_HEX_SIZE];
        struct buf b;

        buf_init(&b, 0);
        for (size_t i = 0; i < FOLDER_NAME_CUT && of[i]; i++)
                buf_addch(&b, isalnum((unsigned char)of[i]) || strchr("-_", of[i]) ? of[i] : '-');
        if (anybodys || strcmp(b.data, of) != 0) {
                crypto_sha256_hex(of, strlen(of), digest);
                buf_addf(&b, "-%.24s", digest);
        }
        return buf_take(&b);
}

char *agent_session_folder(const struct agent *a, const struct turn_run *run)
{
        const struct agent_slot *s = (const struct agent_slot *)a;
        struct turn_run whole = *run;
        char *name, *folder;

        whole.resets = (struct reset_turns){ 0 };
        if (strcmp(s->conf->common.session, "conversation") != 0)
                name = join_ids(&whole, &s->conf->common);
        else if (run->session)
                name = mem_strdup(run->session);
        else
                return mem_printf("conv-%" PRId64, run->conversation);
        folder = agent_folder_name(name, true);
        free(name);
        return folder;
}
