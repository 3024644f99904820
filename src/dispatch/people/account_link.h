/*
 * link: people say themselves that two accounts are theirs.
 *
 *     /link         in one direct chat is answered with a code
 *     /link CODE    in another, within ten minutes, makes the two one person
 *
 * Only direct messages count, only whoever is let in gets a code, and whoever is kept out is not
 * heard. A stranger may type a code: that is how he is let in where rules name his person. Wrong
 * codes are counted: after a few nothing is said any more. Codes live in memory; a restart forgets
 * them.
 */
#ifndef DISPATCH_PEOPLE_ACCOUNT_LINK_H
#define DISPATCH_PEOPLE_ACCOUNT_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/human_code.h"
#include "dispatch/access/access_rules.h"

struct account_links;

#define LINK_VALID_MS  (10 * 60 * 1000)
#define LINK_CODES_MAX 1000
#define LINK_TRIES     5 /* codes that one account may type within LINK_VALID_MS */

struct account_links *account_links_new(void);
void account_links_free(struct account_links *l);

/*
 * A new code for this account; the one it had is over. NULL when too many are under way. Borrowed
 * until the next call.
 */
const char *account_link_offer(struct account_links *l, const struct identity *who, int64_t now_ms);
/*
 * Whose code is it? It can be used once. False when it is nobody's. *owner is borrowed until the
 * next call.
 */
bool account_link_redeem(struct account_links *l, const char *text, int64_t now_ms,
                         struct identity *owner);
/* May this account type another code? Counts it. */
bool account_link_count_try(struct account_links *l, const char *adapter, const char *user,
                            int64_t now_ms);

/* "/link", "/link CODE", "/link@bot CODE": true, and where the code begins ("" without one). */
bool account_link_parse(const char *text, const char **code);

struct matter;
/* The guard: carries the command out, and lets everything else pass. */
bool is_no_link(struct matter *m);

#endif
