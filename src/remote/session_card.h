/*
 * session_card: the messages that show a session: as cards (road/outbox/card.h), in the colours and
 * fields of the blueprint. All results are JSON, yours to free.
 */
#ifndef REMOTE_SESSION_CARD_H
#define REMOTE_SESSION_CARD_H

#include "remote/session_digest.h"
#include "rows/session_row.h"

#define SESSION_NAME_CHARS 80

/* Markdown; may be NULL. named: other sessions are shown there, too, so cards say which it is. */
struct session_card_place {
        const char *ways_to_steer, *ways_to_answer;
        bool named;
};

/* Its first message, which says what it is and how it is. */
char *session_card_root(const struct session_row *row, const struct session_card_place *place);
char *session_card_page(const struct session_row *row, const struct page *p,
                        const struct session_card_place *place);
/* The question, or what became of it. by: the name of who decided; NULL: it is not known. */
char *session_card_approval(const struct session_row *row, const struct session_approval_row *a,
                            const char *by, const struct session_card_place *place);
/* What to read of a message before it is opened, as Markdown of one line; may be NULL. */
char *session_card_headline(const struct page *p);
char *session_card_question(const struct session_approval_row *a);
/* Appends "by Ada", "at the desk"; name: that of who decided, NULL: it is not known. */
void session_card_add_decider(struct buf *out, const char *decided_by, const char *name);
/* What the message of an approval says, as in session_approval_row.shown. NULL: it is open. */
char *session_card_outcome(const struct session_approval_row *a);
/* "fix the build", else the last part of its folder, else its id. */
char *session_card_name(const struct session_row *row);

#endif
