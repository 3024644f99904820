/*
 * rate_limit: tokens that grow back with time, as Slack limits its methods: a number of calls a
 * minute for each method, app and workspace, and of posts a second for each channel.
 */
#ifndef SIM_SLACK_SL_RATE_LIMIT_H
#define SIM_SLACK_SL_RATE_LIMIT_H

struct slack_rates;

struct slack_rates *sl_rate_limit_new(void);
void sl_rate_limit_free(struct slack_rates *r);
/* Counts a call; returns 0, or the seconds after which there is a token again. */
double sl_rate_limit_count(struct slack_rates *r, const char *key, double per_second, double burst);

#endif
