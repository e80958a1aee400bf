package transfer

import (
	"go.uber.org/fx"

	"github.com/norn-go/norn/config"
	"github.com/norn-go/norn/fxmodule"
)

// Module is the saga type and its settings.
var Module = fx.Options(
	fx.Provide(config.Section[Settings]("transfer")),
	fxmodule.Saga[TransferSaga](Type, Options()...),
)
