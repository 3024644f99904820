/*
 * Message ids: which are known to be used, and the highest.
 *
 * Telegram counts messages in id spaces: one per account, for all its private chats and basic
 * groups, and one for each supergroup and channel. Ids only grow, as dates do; a space that breaks
 * this is remembered, and nothing is concluded from its ids.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "platform/adapter_file.h"
#include "platform/telegram/telegram.h"

#define ACCOUNT         "account"
#define SUPERGROUP      (-1000000000000) /* ids of supergroups and channels are below */
#define CHAT_IDS        64               /* remembered per supergroup */
#define SPACES_MAX      256
#define DISORDER_S      5  /* Telegram's dates are seconds of several machines */
#define DATES           16 /* more seconds than that */
#define DISORDERED_FILE "idsNotInOrder"

struct tg_space {
        int64_t highest;
        struct {
                int64_t date, highest; /* the highest id up to this date */
        } dates[DATES];                /* a ring, `date_count` added so far, dates grow */
        unsigned date_count;
        int64_t count;   /* of `known` */
        int64_t known[]; /* id n is at n % count */
};

bool tg_ids_parse(const char *text, int64_t *out)
{
        char *end;

        errno = 0;
        *out = text ? strtoll(text, &end, 10) : 0;
        return text && *text && *end == '\0' && errno == 0;
}

bool tg_ids_own_space(const char *chat)
{
        int64_t id;

        return tg_ids_parse(chat, &id) && id <= SUPERGROUP;
}

bool tg_ids_same_space(const char *chat, const char *other)
{
        return tg_ids_own_space(chat) || tg_ids_own_space(other) ? strcmp(chat, other) == 0 : true;
}

static const char *space_name(const char *chat)
{
        return tg_ids_own_space(chat) ? chat : ACCOUNT;
}

void tg_ids_release(struct telegram *tg)
{
        void *space;

        for (size_t i = 0; map_each(&tg->spaces, &i, NULL, &space);)
                free(space);
        map_release(&tg->spaces);
        map_init(&tg->spaces);
}

/* What is not known is asked. The account's ids stay: most chats share them. */
static void forget_chats(struct telegram *tg)
{
        const char *name;
        void *space;

        for (size_t i = 0; map_each(&tg->spaces, &i, &name, &space);) {
                if (strcmp(name, ACCOUNT) == 0)
                        continue;
                map_remove(&tg->spaces, name);
                free(space);
        }
}

static struct tg_space *find(const struct telegram *tg, const char *chat)
{
        return map_get(&tg->spaces, space_name(chat));
}

static struct tg_space *make(struct telegram *tg, const char *chat)
{
        struct tg_space *s = find(tg, chat);
        int64_t count = tg_ids_own_space(chat) ? CHAT_IDS : TG_IDS_MAX;

        if (s)
                return s;
        if (tg->spaces.count >= SPACES_MAX)
                forget_chats(tg);
        s = mem_zalloc(sizeof(*s) + (size_t)count * sizeof(s->known[0]));
        s->count = count;
        map_put(&tg->spaces, space_name(chat), s);
        return s;
}

/* Does a message that is clearly older have a higher id? */
static bool is_disorder(const struct tg_space *s, int64_t id, int64_t date)
{
        for (unsigned i = 1; i <= DATES && i <= s->date_count; i++) {
                unsigned at = (s->date_count - i) % DATES;

                if (s->dates[at].date < date - DISORDER_S)
                        return s->dates[at].highest > id;
        }
        return false;
}

static void note_date(struct tg_space *s, int64_t id, int64_t date)
{
        unsigned last = (s->date_count - 1) % DATES;

        if (s->date_count > 0 && date <= s->dates[last].date) {
                if (id > s->dates[last].highest)
                        s->dates[last].highest = id;
                return;
        }
        if (s->date_count > 0 && s->dates[last].highest > id)
                id = s->dates[last].highest;
        s->dates[s->date_count % DATES].date = date;
        s->dates[s->date_count++ % DATES].highest = id;
}

void tg_ids_note(struct telegram *tg, const char *chat, int64_t id, int64_t date)
{
        struct tg_space *s;

        if (id <= 0)
                return;
        s = make(tg, chat);
        if (date > 0 && is_disorder(s, id, date) && tg_ids_in_order(tg, chat)) {
                log_warn("Telegram's message ids are not in the order of their dates; sends "
                         "without an answer will not be repeated",
                         LOG_S("adapter", tg->adapter->name), LOG_S("ids", space_name(chat)));
                adapter_file_set(tg->adapter, tg->saved, DISORDERED_FILE, space_name(chat), "yes");
        }
        if (id > s->known[id % s->count]) { /* an old one must not hide a new one */
                s->known[id % s->count] = id;
                tg_reconcile_known(tg, chat, id);
        }
        if (date > 0)
                note_date(s, id, date);
        if (id > s->highest)
                s->highest = id;
}

bool tg_ids_in_order(const struct telegram *tg, const char *chat)
{
        return !adapter_file_get(tg->saved, DISORDERED_FILE, space_name(chat));
}

bool tg_ids_known(const struct telegram *tg, const char *chat, int64_t id)
{
        const struct tg_space *s = find(tg, chat);

        return s && s->known[id % s->count] == id;
}

int64_t tg_ids_highest(const struct telegram *tg, const char *chat)
{
        const struct tg_space *s = find(tg, chat);

        return s ? s->highest : 0;
}
