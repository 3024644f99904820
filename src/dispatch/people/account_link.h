/*
 * account_link: people connect two accounts of theirs.
 *
 *     /link         in one direct chat is answered with a code
 *     /link CODE    in another, within ten minutes, merges the two persons
 *
 * Only direct messages count. Only allowed senders get a code, and denied ones are ignored. A
 * stranger may redeem a code, which lets them in where a rule names their person. After a few wrong
 * codes a sender is ignored. Codes are kept in memory; a restart drops them.
 */
#ifndef DISPATCH_PEOPLE_ACCOUNT_LINK_H
#define DISPATCH_PEOPLE_ACCOUNT_LINK_H

#include <stdbool.h>

#define LINK_VALID_MS  (10 * 60 * 1000)
#define LINK_CODES_MAX 1000
#define LINK_TRIES     5 /* codes that one account may type within LINK_VALID_MS */

/* The codes that wait for another account. */
struct account_links;

struct account_links *account_links_new(void);
void account_links_free(struct account_links *l);

/* "/link", "/link CODE", "/link@bot CODE": true, and where the code begins ("" without one). */
bool account_link_parse(const char *text, const char **code);

#endif
