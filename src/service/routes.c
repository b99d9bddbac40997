/* routes.c - all routes of the service: a table for each file that answers requests. */
#include "service/http/assets.h"
#include "service/parts.h"

const struct sl_http_route *const sl_service_routes[] = {
	sl_assets_routes,
	sl_capabilities_routes,
	sl_openapi_routes,
	sl_experiment_routes,
	sl_session_routes,
	sl_live_routes,
	sl_run_routes,
	sl_explain_routes,
	sl_metrics_routes,
	sl_telegram_routes,
	NULL,
};
