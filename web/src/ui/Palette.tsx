export default function Palette(_: any) {
  return <div className="screen empty">Palette</div>;
}
