/*
 * note: what an agent should know although it was not asked: what people said while a person had
 * taken over, and what that person answered in the bot's name. These lines stand in the transcript
 * like those of turns, with turn 0.
 */
#include "road/road_private.h"

/* of one chat that hear a person's answer: those that were active last */
#define CHAT_CONVERSATIONS 64

int note_heard(struct store_tx *tx, const char *key, const struct lane_name *n,
               const struct incoming *in, int64_t now_ms, struct error *err)
{
        struct store_stmt *s;
        int64_t conversation, begun;

        if (!in->text || in->text[0] == '\0')
                return 0;
        if (lane_row(tx, key, n, now_ms, &conversation, &begun, err) < 0)
                return -1;
        s = store_prepare(tx,
                          "INSERT INTO transcript(conversation, turn, role, name, text, time_ms)"
                          " VALUES(?1, 0, 'user', ?2, ?3, ?4)");
        store_bind_int(s, 1, conversation);
        store_bind_text(s, 2, in->sender_name ? in->sender_name : in->sender_username);
        store_bind_text(s, 3, in->text);
        store_bind_int(s, 4, now_ms);
        return store_run(s, err);
}

int note_told(struct store_tx *tx, const struct out *o, const char *author, const char *text,
              struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "INSERT INTO transcript(conversation, turn, role, name, text, time_ms)"
                    " SELECT id, 0, 'assistant', ?4, ?5, CAST(?6 AS BIGINT) FROM conversations"
                    " WHERE adapter = ?1 AND channel = ?2 AND COALESCE(thread, '') = ?3"
                    " ORDER BY active_ms DESC LIMIT ?7");

        store_bind_text(s, 1, o->d.adapter);
        store_bind_text(s, 2, o->d.channel);
        store_bind_text(s, 3, o->d.thread ? o->d.thread : "");
        store_bind_text(s, 4, author);
        store_bind_text(s, 5, text);
        store_bind_int(s, 6, o->d.created_ms);
        store_bind_int(s, 7, CHAT_CONVERSATIONS);
        return store_run(s, err);
}
