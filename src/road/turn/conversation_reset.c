/*
 * anew: whose past no longer counts.
 *
 * An agent may remember a person over all his chats, or a chat with everybody in it (the `session`
 * of an agent). Such a memory spans lanes, and /new in one of them ends it for all; so it is noted
 * apart from the lanes' rows: for the person, for the chat, and for the person in the chat.
 */
#include "road/road_private.h"

static const char *shown(const char *text)
{
        return text ? text : "";
}

static int note(struct store_tx *tx, const struct lane_name *where, const char *person,
                int64_t turn, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "INSERT INTO anew(adapter, channel, thread, person, turn)"
                    " VALUES(?1, ?2, ?3, ?4, ?5)"
                    " ON CONFLICT(adapter, channel, thread, person) DO UPDATE SET turn = ?5");

        store_bind_text(s, 1, where->adapter);
        store_bind_text(s, 2, shown(where->channel));
        store_bind_text(s, 3, shown(where->thread));
        store_bind_text(s, 4, person);
        store_bind_int(s, 5, turn);
        return store_run(s, err);
}

int anew_note(struct store_tx *tx, const struct lane_name *where, const char *sender, int64_t turn,
              struct error *err)
{
        const struct lane_name anywhere = { .adapter = where->adapter };

        if (note(tx, where, "", turn, err) < 0)
                return -1;
        if (!sender || !*sender)
                return 0;
        return note(tx, &anywhere, sender, turn, err) < 0 ? -1 : note(tx, where, sender, turn, err);
}

/* Three looks by the key, one each: an OR of them would read the whole adapter. */
static const char look[] =
        "SELECT 0, turn FROM anew WHERE adapter = ?1 AND channel = '' AND thread = ''"
        " AND person = ?4"
        " UNION ALL SELECT 1, turn FROM anew WHERE adapter = ?1 AND channel = ?2"
        " AND thread = ?3 AND person = ''"
        " UNION ALL SELECT 2, turn FROM anew WHERE adapter = ?1 AND channel = ?2"
        " AND thread = ?3 AND person = ?4";

int anew_look(struct store_tx *tx, const struct lane_name *where, const char *sender, int64_t turn,
              struct turn_anew *out, struct error *err)
{
        int64_t *const found[] = { &out->person, &out->chat, &out->person_in_chat };
        struct store_stmt *s = store_prepare(tx, look);
        int rc;

        *out = (struct turn_anew){ 0 };
        store_bind_text(s, 1, where->adapter);
        store_bind_text(s, 2, shown(where->channel));
        store_bind_text(s, 3, shown(where->thread));
        store_bind_text(s, 4, shown(sender));
        while ((rc = store_step(s, err)) == 1) {
                int64_t since = store_col_int(s, 1);

                if (since <= turn) /* a turn that was there before is not touched by it */
                        *found[store_col_int(s, 0)] = since;
        }
        return rc;
}
