"""The durable run engine. `service` is what every face calls; `supervisor` is what makes it live."""
