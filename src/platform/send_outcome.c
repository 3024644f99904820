#include "platform/send_outcome.h"

enum send_outcome send_outcome_of(int status, enum http_reach reach, bool repeatable)
{
        if (status == 0 && reach == HTTP_NOT_SENT)
                return SEND_RETRY;
        if (status == 401 || status == 408 || status == 429)
                return SEND_RETRY;
        if (status >= 300 && status < 500)
                return SEND_REJECTED;
        return repeatable ? SEND_RETRY : SEND_UNSURE;
}

enum error_kind send_outcome_kind(int status, enum error_kind transport)
{
        if (status == 0)
                return transport;
        if (status == 429)
                return ERR_LIMIT;
        return status == 408 || status >= 500 ? ERR_NET : ERR_REFUSED;
}
